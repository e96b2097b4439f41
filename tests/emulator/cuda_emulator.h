/* cuda_emulator.h: what CUDA C needs to be compiled by the host's C++ compiler and run by
 * emulator.cc, one fiber for each thread of a block. Comes before the generated source.
 *
 * A thread runs until it waits for others, so atomics are plain operations. */
#ifndef TILE_TESTS_CUDA_EMULATOR_H
#define TILE_TESTS_CUDA_EMULATOR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/emulator/emulator_calls.h"

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static
#define __syncthreads() emulator_here->barrier(__LINE__)
#define __threadfence() ((void)0)
#define threadIdx emulator_here->thread
#define blockIdx emulator_here->block
#define blockDim emulator_here->block_dim
#define gridDim emulator_here->grid_dim
#define TILE_DYNAMIC_SHARED(name) unsigned char *const name = emulator_here->shared
#define TILE_LANE_NUMBER ((int)threadIdx.x)
#define TILE_LANE_COUNT ((int)blockDim.x)

static emulator_calls *emulator_here;

template <typename T> static inline T atomicAdd(T *p, T v) {
    const T before = *p;
    *p = before + v;
    return before;
}
template <typename T> static inline T atomicExch(T *p, T v) {
    const T before = *p;
    *p = v;
    return before;
}
template <typename T> static inline T atomicCAS(T *p, T wanted, T v) {
    const T before = *p;
    if (before == wanted) *p = v;
    return before;
}

/* Every lane of the mask puts a value and reads one of lane's; all must come here. */
template <typename T> static inline T emulator_exchange(unsigned mask, T v, int from, int line) {
    uint64_t bits = 0;
    memcpy(&bits, &v, sizeof v);
    emulator_here->put(bits);
    emulator_here->meet(mask, line);
    bits = emulator_here->peer(from);
    emulator_here->meet(mask, line);
    memcpy(&v, &bits, sizeof v);
    return v;
}
static inline unsigned emulator_ballot(unsigned mask, bool vote, int line) {
    unsigned all = 0;
    emulator_here->put(vote);
    emulator_here->meet(mask, line);
    for (int k = 0; k < 32; k++)
        if (mask >> k & 1u && emulator_here->peer(k)) all |= 1u << k;
    emulator_here->meet(mask, line);
    return all;
}
#define EMULATOR_LANE ((int)(threadIdx.x % 32u))
/* A lane beyond the ends of the warp: the own value. */
#define EMULATOR_INSIDE(k) ((k) < 0 || (k) > 31 ? EMULATOR_LANE : (k))
#define __syncwarp(...) emulator_here->meet(0xffffffffu __VA_OPT__(&(__VA_ARGS__)), __LINE__)
#define __shfl_sync(m, v, from) emulator_exchange(m, v, (from)&31, __LINE__)
#define __shfl_up_sync(m, v, by) \
    emulator_exchange(m, v, EMULATOR_INSIDE(EMULATOR_LANE - (int)(by)), __LINE__)
#define __shfl_down_sync(m, v, by) \
    emulator_exchange(m, v, EMULATOR_INSIDE(EMULATOR_LANE + (int)(by)), __LINE__)
#define __shfl_xor_sync(m, v, by) \
    emulator_exchange(m, v, EMULATOR_INSIDE(EMULATOR_LANE ^ (int)(by)), __LINE__)
#define __ballot_sync(m, vote) emulator_ballot(m, vote, __LINE__)
#define __any_sync(m, vote) (emulator_ballot(m, vote, __LINE__) != 0)
#define __all_sync(m, vote) (emulator_ballot(m, !(vote), __LINE__) == 0)

#endif
