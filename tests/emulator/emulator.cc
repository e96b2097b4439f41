/* emulator.cc: runs the threads of a block as fibers, and finds what they must not do. */
#include "tests/emulator/emulator.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <vector>

#include "tests/emulator/emulator_calls.h"
#include "tests/emulator/fiber.h"

namespace emulator {

namespace {

enum { WARP = 32, THREADS_MAX = 1024, GUARD = 4096, BLOCKS_AT_ONCE = 5 };
constexpr unsigned char kGuard = 0xE5, kUnset = 0xA5;
constexpr size_t kSharedMost = size_t{227} << 10, kStack = size_t{512} << 10;

enum class State { kReady, kBarrier, kWarp, kDone };

struct Thread {
    Fiber fiber;
    State state = State::kDone;
    int line = 0;
    unsigned mask = 0;
    uint64_t put = 0;
};

struct Machine {
    std::vector<Thread> thread;
    std::vector<unsigned char *> stack;
    emulator_calls calls = {};
    Schedule schedule;
    int threads = 0, current = 0;
    Fiber home;
    void (*entry)(const void *) = nullptr;
    const void *argument = nullptr;
    std::vector<unsigned char> shared;
    std::mt19937_64 random;
};
Machine machine;

/* Called by a thread: lets others run. */
void wait_as(State state, int line, unsigned mask) {
    Thread &t = machine.thread[static_cast<size_t>(machine.current)];
    t.state = state;
    t.line = line;
    t.mask = mask;
    switch_fiber(&t.fiber, &machine.home);
}

void barrier(int line) {
    wait_as(State::kBarrier, line, 0);
}
void meet(unsigned mask, int line) {
    wait_as(State::kWarp, line, mask);
}
void put(uint64_t value) {
    machine.thread[static_cast<size_t>(machine.current)].put = value;
}
uint64_t peer(int lane) {
    const size_t at = static_cast<size_t>(machine.current / WARP * WARP + lane);
    return at < static_cast<size_t>(machine.threads) ? machine.thread[at].put : 0;
}

void thread_main() {
    machine.entry(machine.argument);
    wait_as(State::kDone, 0, 0);
}

unsigned char *new_stack() {
    const int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *at = mmap(nullptr, kStack + GUARD, PROT_READ | PROT_WRITE, kind, -1, 0);
    if (at == MAP_FAILED || mprotect(at, GUARD, PROT_NONE)) std::abort();
    return static_cast<unsigned char *>(at) + GUARD;
}

void start_threads() {
    const size_t n = static_cast<size_t>(machine.threads);
    if (machine.thread.size() < n) machine.thread.resize(n);
    while (machine.stack.size() < n) machine.stack.push_back(new_stack());
    for (size_t k = 0; k < n; k++) {
        make_fiber(&machine.thread[k].fiber, machine.stack[k], kStack, thread_main);
        machine.thread[k].state = State::kReady;
    }
}

void resume(int k) {
    machine.current = k;
    machine.calls.thread.x = static_cast<unsigned>(k);
    switch_fiber(&machine.home, &machine.thread[static_cast<size_t>(k)].fiber);
}

std::string divergence(int a, int b) {
    const auto place = [](int k) {
        const Thread &t = machine.thread[static_cast<size_t>(k)];
        const std::string who = "thread " + std::to_string(k);
        if (t.state == State::kDone) return who + " has ended";
        return who + (t.state == State::kWarp ? " waits for its warp" : " waits at the barrier") +
               " of line " + std::to_string(t.line);
    };
    return "a barrier that not all threads come to: " + place(a) + ", " + place(b);
}

/* All wait or have ended: lets a block go on, or warps. */
std::string release() {
    const Thread *t = machine.thread.data();
    int apart = 0;
    for (int k = 1; k < machine.threads && !apart; k++)
        if (t[k].state != t[0].state || t[k].line != t[0].line) apart = k;
    if (!apart && t[0].state != State::kWarp) {
        for (int k = 0; k < machine.threads && t[0].state == State::kBarrier; k++)
            if (k) machine.thread[static_cast<size_t>(k)].state = State::kReady;
        if (t[0].state == State::kBarrier) machine.thread[0].state = State::kReady;
        return "";
    }
    bool some = false;
    for (int k = 0; k < machine.threads; k++) {
        if (t[k].state != State::kWarp) continue;
        const int first = k / WARP * WARP;
        bool all = (t[k].mask >> (k - first) & 1u) != 0;
        for (int i = first; i < first + WARP && i < machine.threads; i++)
            if (t[k].mask >> (i - first) & 1u)
                all = all && t[i].state == State::kWarp && t[i].mask == t[k].mask &&
                      t[i].line == t[k].line;
        if (!all) continue;
        some = true;
        for (int i = first; i < first + WARP && i < machine.threads; i++)
            if (t[k].mask >> (i - first) & 1u)
                machine.thread[static_cast<size_t>(i)].state = State::kReady;
    }
    return some ? "" : divergence(0, apart);
}

void order_turns(std::vector<int> *turn) {
    switch (machine.schedule.order) {
    case Order::kAscending: break;
    case Order::kDescending: std::reverse(turn->begin(), turn->end()); break;
    case Order::kShuffled: std::shuffle(turn->begin(), turn->end(), machine.random); break;
    }
}

std::vector<int> numbers(int n) {
    std::vector<int> all;
    for (int k = 0; k < n; k++) all.push_back(k);
    return all;
}

std::string run_threads() {
    start_threads();
    std::vector<int> turn = numbers(machine.threads);
    order_turns(&turn);
    for (;;) {
        bool done = true;
        if (machine.schedule.order == Order::kShuffled) order_turns(&turn);
        for (int k : turn)
            if (machine.thread[static_cast<size_t>(k)].state == State::kReady) resume(k);
        for (int k = 0; k < machine.threads; k++)
            done = done && machine.thread[static_cast<size_t>(k)].state == State::kDone;
        if (done) return "";
        const std::string wrong = release();
        if (!wrong.empty()) return wrong;
    }
}

std::string run_block(unsigned block, size_t shared) {
    std::vector<unsigned char> &memory = machine.shared;
    memory.resize(shared + 2 * GUARD + GUARD);
    unsigned char *first =
        memory.data() + GUARD - reinterpret_cast<uintptr_t>(memory.data()) % GUARD;
    std::memset(first, kGuard, GUARD);
    std::memset(first + GUARD, kUnset, shared);
    std::memset(first + GUARD + shared, kGuard,
                memory.data() + memory.size() - first - GUARD - shared);
    machine.calls.shared = first + GUARD;
    machine.calls.block.x = block;
    const std::string wrong = run_threads();
    if (!wrong.empty()) return wrong;
    for (const unsigned char *p = first; p < memory.data() + memory.size(); p++) {
        if (p == first + GUARD) p += shared;
        if (p == memory.data() + memory.size()) break;
        if (*p != kGuard)
            return "a write outside of shared memory, " + std::to_string(p - first - GUARD) +
                   " bytes from its beginning, " + std::to_string(shared) + " are there";
    }
    return "";
}

Counts counted;

} // namespace

void note_compiled(bool found, double seconds) {
    (found ? counted.found : counted.compiled)++;
    counted.compile_seconds += seconds;
}

Counts counts() {
    return counted;
}

void use(const Schedule &schedule) {
    machine.schedule = schedule;
}

Schedule from_environment() {
    Schedule s;
    const char *threads = std::getenv("TILE_EMULATOR_THREADS");
    const char *order = std::getenv("TILE_EMULATOR_ORDER");
    if (threads && *threads) s.threads = std::atoi(threads);
    if (s.threads < 1 || s.threads > THREADS_MAX) std::abort();
    if (!order || !*order || !std::strcmp(order, "ascending")) return s;
    s.order = std::strcmp(order, "descending") ? Order::kShuffled : Order::kDescending;
    if (s.order == Order::kShuffled) s.seed = std::strtoull(order, nullptr, 10);
    return s;
}

std::string run(void *kernel, const void *argument, int64_t blocks, size_t shared, int threads) {
    const auto begin = std::chrono::steady_clock::now();
    struct Entry {
        void (*run)(const void *);
        void (*set)(emulator_calls *);
    };
    static std::mutex one;
    const std::lock_guard<std::mutex> lock(one);
    const Entry *entry = static_cast<const Entry *>(kernel);
    machine.threads = threads ? threads : machine.schedule.threads;
    machine.random.seed(machine.schedule.seed);
    machine.entry = entry->run;
    machine.argument = argument;
    const unsigned n = static_cast<unsigned>(std::min<int64_t>(blocks, BLOCKS_AT_ONCE));
    machine.calls.barrier = barrier;
    machine.calls.meet = meet;
    machine.calls.peer = peer;
    machine.calls.put = put;
    machine.calls.block_dim = {static_cast<unsigned>(machine.threads), 1, 1};
    machine.calls.grid_dim = {n, 1, 1};
    entry->set(&machine.calls);
    std::vector<int> turn = numbers(static_cast<int>(n));
    order_turns(&turn);
    std::string wrong;
    for (size_t k = 0; k < turn.size() && wrong.empty(); k++)
        wrong = run_block(static_cast<unsigned>(turn[k]), shared);
    counted.launches++;
    counted.run_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return wrong;
}

} // namespace emulator
