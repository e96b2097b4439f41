/* fiber.h: switching between stacks. */
#ifndef TILE_TESTS_FIBER_H
#define TILE_TESTS_FIBER_H

#include <cstddef>

#ifdef __x86_64__
struct Fiber {
    void *stack = nullptr;
};
#else
#include <ucontext.h>
struct Fiber {
    ucontext_t context;
};
#endif

/* A fiber that runs main, which does not return, when it is first switched to. */
void make_fiber(Fiber *fiber, void *stack, size_t bytes, void (*main)());

void switch_fiber(Fiber *from, Fiber *to);

#endif
