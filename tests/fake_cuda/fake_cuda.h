/* fake_cuda.h: libcuda, NVRTC and cuRAND in one library, made of the emulator: so the whole of
 * cuda/ runs where there is no GPU.
 *
 * The environment chooses, for a whole test run: TILE_TEST_DEVICE=cuda that contexts are of a CUDA
 * device; TILE_TEST_CUDA=fake that it is this one (else the machine's).
 *
 * Device memory cannot be touched but by calls and kernels: the host's access ends the process.
 * Work is done late: when somebody waits for it, in the order of the stream. Kernels run with as
 * many threads and in the order that the emulator is told. */
#ifndef TILE_TESTS_FAKE_CUDA_H
#define TILE_TESTS_FAKE_CUDA_H

#include <cstdint>

extern "C" {

/* The nth call from now on (1: the next) of a function returns a result, and does nothing. Of
 * "kernel": the nth kernel that runs fails. A name of NULL: nothing fails from now on, what was
 * lost is there again. */
void fake_cuda_fail(const char *function, int64_t nth, int result);

/* How often a function was called. */
int64_t fake_cuda_calls(const char *function);

/* What the device is like: "devices", "memory" (bytes), "pools", "major", "minor", "version". Of
 * the next context. */
void fake_cuda_set(const char *what, int64_t value);

/* Allocations, modules, streams and graphs that were not given back. */
int64_t fake_cuda_held(void);

/* Whether the calling thread is in a call of the library: what that allocates is no one else's. */
int fake_cuda_inside(void);
}

#endif
