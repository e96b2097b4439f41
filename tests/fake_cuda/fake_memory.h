/* fake_memory.h: device memory that nobody may touch but while it is open. */
#ifndef TILE_TESTS_FAKE_MEMORY_H
#define TILE_TESTS_FAKE_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace fake {

/* Kernels can touch memory while one lives. */
class Open {
  public:
    Open();
    ~Open();
};

/* Where the driver itself gets at an address, always. */
unsigned char *touch(uint64_t address);

/* 0: there is no room within the limit. */
uint64_t allocate(size_t bytes, size_t limit);

/* "" or what is wrong: no such memory, or a write around it. */
std::string release(uint64_t address);

/* Whether all bytes are of one allocation. */
bool holds(uint64_t address, size_t bytes);

size_t used();
int64_t allocations();

} // namespace fake

#endif
