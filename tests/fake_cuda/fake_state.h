/* fake_state.h: what the parts of the fake driver share. */
#ifndef TILE_TESTS_FAKE_STATE_H
#define TILE_TESTS_FAKE_STATE_H

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/fake_cuda/fake_cuda.h"

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace fake {

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    LAUNCH_FAILED = 719,
    CAPTURE_INVALIDATED = 901
};

/* Something that is done later; the driver's result. */
using Work = std::function<int()>;

struct Graph {
    std::vector<Work> work;
};

struct Stream {
    std::vector<Work> queue;
    bool capturing = false;
    Graph captured;
};

struct Failure {
    int64_t left;
    int result;
};

struct State {
    std::recursive_mutex lock;
    std::map<std::string, int64_t> calls, setting;
    std::map<std::string, Failure> failure;
    int lost = SUCCESS; /* what every call returns from now on */
    int64_t held = 0;   /* but for allocations */
    State();
};
State &state();

/* While one lives, the thread is in a call. */
class Inside {
  public:
    Inside();
    ~Inside();
};

/* Counts the call; its result when it is to fail. needs_context: one must be current. */
int enter(const char *function, bool needs_context = true);

/* Takes work for a stream, or for its graph. */
int give(Stream *stream, Work work);

/* Does all that a stream was given. */
int finish(Stream *stream);

/* Runs a kernel, unless it is to fail. */
int run_kernel(void *kernel, const void *argument, unsigned blocks, size_t shared, int threads);

} // namespace fake

/* The first line of every function of the driver: it may return. */
#define FAKE_ENTER(...)                                                   \
    const fake::Inside inside;                                            \
    const std::lock_guard<std::recursive_mutex> hold(fake::state().lock); \
    const int refused = fake::enter(__func__ __VA_OPT__(, ) __VA_ARGS__); \
    if (refused) return refused

#endif
