/* fake_memory.cc: device memory that nobody may touch but while it is open. */
#include "tests/fake_cuda/fake_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace fake {

namespace {

constexpr size_t kArena = size_t{1} << 36, kAlign = 256, kGuard = 256;
constexpr unsigned char kUnset = 0xA5, kEdge = 0xE5;

struct Piece {
    size_t bytes, whole;
};

std::recursive_mutex lock;
unsigned char *arena, *twin;
size_t touched; /* bytes of the arena that were ever in use */
int opened;
std::map<uint64_t, Piece> pieces;       /* by address */
std::multimap<size_t, uint64_t> unused; /* by whole size */
size_t in_use;

void protect(int how) {
    if (touched && mprotect(arena, (touched + 4095) / 4096 * 4096, how)) std::abort();
}

/* The same memory twice: where device addresses are, and where the driver itself gets at it. */
void make_arena() {
    const int file = memfd_create("fake_cuda", MFD_CLOEXEC), kind = MAP_SHARED | MAP_NORESERVE;
    if (file < 0 || ftruncate(file, kArena)) std::abort();
    void *at = mmap(nullptr, kArena, PROT_NONE, kind, file, 0);
    void *own = mmap(nullptr, kArena, PROT_READ | PROT_WRITE, kind, file, 0);
    if (at == MAP_FAILED || own == MAP_FAILED) std::abort();
    arena = static_cast<unsigned char *>(at);
    twin = static_cast<unsigned char *>(own);
    close(file);
}

void grow(size_t bytes) {
    if (!arena) make_arena();
    touched += bytes;
    if (touched > kArena) std::abort();
    if (opened) protect(PROT_READ | PROT_WRITE);
}

} // namespace

Open::Open() {
    const std::lock_guard<std::recursive_mutex> hold(lock);
    if (opened++ == 0) protect(PROT_READ | PROT_WRITE);
}

Open::~Open() {
    const std::lock_guard<std::recursive_mutex> hold(lock);
    if (--opened == 0) protect(PROT_NONE);
}

unsigned char *touch(uint64_t address) {
    return twin + (address - reinterpret_cast<uint64_t>(arena));
}

uint64_t allocate(size_t bytes, size_t limit) {
    const std::lock_guard<std::recursive_mutex> hold(lock);
    if (bytes > limit || in_use > limit - bytes) return 0;
    const size_t whole = (bytes + kAlign - 1) / kAlign * kAlign + kGuard;
    uint64_t at;
    const auto found = unused.find(whole);
    if (found != unused.end()) {
        at = found->second;
        unused.erase(found);
    } else {
        const size_t first = touched;
        grow(whole);
        at = reinterpret_cast<uint64_t>(arena) + first;
    }
    unsigned char *memory = touch(at);
    std::memset(memory, kUnset, bytes);
    std::memset(memory + bytes, kEdge, whole - bytes);
    pieces[at] = {bytes, whole};
    in_use += bytes;
    return at;
}

std::string release(uint64_t address) {
    const std::lock_guard<std::recursive_mutex> hold(lock);
    const auto found = pieces.find(address);
    if (found == pieces.end()) return "memory is freed that is none";
    const Piece piece = found->second;
    const unsigned char *memory = touch(address);
    std::string wrong;
    for (size_t k = piece.bytes; k < piece.whole; k++)
        if (memory[k] != kEdge) wrong = "a write behind the end of device memory";
    pieces.erase(found);
    unused.insert({piece.whole, address});
    in_use -= piece.bytes;
    return wrong;
}

bool holds(uint64_t address, size_t bytes) {
    const std::lock_guard<std::recursive_mutex> hold(lock);
    auto found = pieces.upper_bound(address);
    if (found == pieces.begin()) return false;
    --found;
    const uint64_t from = address - found->first;
    return from <= found->second.bytes && bytes <= found->second.bytes - from;
}

size_t used() {
    const std::lock_guard<std::recursive_mutex> hold(lock);
    return in_use;
}

int64_t allocations() {
    const std::lock_guard<std::recursive_mutex> hold(lock);
    return static_cast<int64_t>(pieces.size());
}

} // namespace fake
