/* latency_alloc.h: how often this program has asked for memory. */
#ifndef TILE_BENCHMARKS_LATENCY_ALLOC_H
#define TILE_BENCHMARKS_LATENCY_ALLOC_H

#include <stdint.h>

/* Calls of malloc, calloc, realloc, aligned_alloc and posix_memalign so far, by any thread. */
int64_t latency_alloc_count(void);

#endif
