/* fake_state.cc: planted failures, counts, and work that is done late. */
#include "tests/fake_cuda/fake_state.h"

#include <cstdio>

#include "tests/emulator/emulator.h"
#include "tests/fake_cuda/fake_memory.h"

namespace fake {

thread_local int current_contexts;

State::State() {
    setting = {{"devices", 1}, {"memory", int64_t{4} << 30},
               {"pools", 1},   {"major", 9},
               {"minor", 0},   {"version", 13000}};
}

State &state() {
    static State *made = new State; /* outlives what uses it */
    return *made;
}

namespace {
thread_local int calls_entered;
} // namespace

Inside::Inside() {
    calls_entered++;
}
Inside::~Inside() {
    calls_entered--;
}

namespace {

int planted(const std::string &function) {
    State &s = state();
    const auto found = s.failure.find(function);
    if (found == s.failure.end() || --found->second.left > 0) return SUCCESS;
    const int result = found->second.result;
    s.failure.erase(found);
    if (result == 214 || result >= 700) {
        if (result < 800 && result != 701) s.lost = result;
    }
    return result;
}

enum { QUEUE_MAX = 256 };

} // namespace

int enter(const char *function, bool needs_context) {
    State &s = state();
    s.calls[function]++;
    const int result = planted(function);
    if (result) return result;
    if (!needs_context) return SUCCESS;
    if (s.lost) return s.lost;
    return current_contexts > 0 ? SUCCESS : INVALID_CONTEXT;
}

int finish(Stream *stream) {
    std::vector<Work> queue;
    queue.swap(stream->queue);
    if (queue.empty()) return state().lost;
    for (const Work &work : queue) {
        if (state().lost) break;
        const int result = work();
        if (result) state().lost = result;
    }
    return state().lost;
}

int give(Stream *stream, Work work) {
    if (stream->capturing) {
        stream->captured.work.push_back(std::move(work));
        return SUCCESS;
    }
    stream->queue.push_back(std::move(work));
    return stream->queue.size() > QUEUE_MAX ? finish(stream) : SUCCESS;
}

int run_kernel(void *kernel, const void *argument, unsigned blocks, size_t shared, int threads) {
    state().calls["kernel"]++;
    const int result = planted("kernel");
    if (result) return result;
    const Open open;
    const std::string wrong = emulator::run(kernel, argument, blocks, shared, threads);
    if (wrong.empty()) return SUCCESS;
    std::fprintf(stderr, "fake CUDA: %s\n", wrong.c_str());
    return LAUNCH_FAILED;
}

} // namespace fake

FAKE_API void fake_cuda_fail(const char *function, int64_t nth, int result) {
    fake::State &s = fake::state();
    const std::lock_guard<std::recursive_mutex> hold(s.lock);
    if (function) {
        s.failure[function] = {nth, result};
        return;
    }
    s.failure.clear();
    s.lost = fake::SUCCESS;
}

FAKE_API int64_t fake_cuda_calls(const char *function) {
    fake::State &s = fake::state();
    const std::lock_guard<std::recursive_mutex> hold(s.lock);
    return s.calls[function];
}

FAKE_API void fake_cuda_set(const char *what, int64_t value) {
    fake::State &s = fake::state();
    const std::lock_guard<std::recursive_mutex> hold(s.lock);
    s.setting[what] = value;
}

FAKE_API int fake_cuda_inside(void) {
    return fake::calls_entered;
}

FAKE_API int64_t fake_cuda_held(void) {
    return fake::allocations() + fake::state().held;
}
