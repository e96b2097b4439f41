/* cuda_fixture.h: CUDA contexts in tests: the machine's device, or the fake one. */
#ifndef TILE_TESTS_CUDA_FIXTURE_H
#define TILE_TESTS_CUDA_FIXTURE_H

#include <cstdint>

/* The functions of tests/fake_cuda/fake_cuda.h, from the library that is loaded. */
struct FakeCuda {
    void (*fail)(const char *function, int64_t nth, int result);
    int64_t (*calls)(const char *function);
    void (*set)(const char *what, int64_t value);
    int64_t (*held)();
    int (*inside)();
};

/* Has CUDA contexts made on the fake device from now on. */
const FakeCuda *use_fake_cuda();

/* Has tile_context_create make CUDA contexts from now on, or no longer. */
void make_cuda_contexts(bool on);

/* The library that holds the fake device. */
const char *fake_cuda_library();

/* Whether tile_context_create makes CUDA contexts: TILE_TEST_DEVICE=cuda. */
bool tests_run_on_cuda();

#endif
