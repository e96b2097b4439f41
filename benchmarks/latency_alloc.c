/* latency_alloc.c: counts allocations: this program's malloc and its kin call those of glibc. */
#define _POSIX_C_SOURCE 200809L
#include "benchmarks/latency_alloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* glibc exports its allocator under these names too, for programs that bring their own. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_llong calls;

int64_t latency_alloc_count(void) {
    return atomic_load(&calls);
}

static void count_one(void) {
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

void *malloc(size_t size) {
    count_one();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    count_one();
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    count_one();
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count_one();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    count_one();
    *memory = __libc_memalign(alignment, size);
    return *memory != NULL ? 0 : ENOMEM;
}
