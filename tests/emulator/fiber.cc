/* fiber.cc: switching between stacks; the registers that a call preserves are saved on the stack.
 */
#include "tests/emulator/fiber.h"

#include <cstdint>

#ifdef __x86_64__
extern "C" void tile_test_switch(void **from, void *to);

__asm__(".text\n"
        ".globl tile_test_switch\n"
        ".type tile_test_switch, @function\n"
        "tile_test_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n"
        "    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n"
        "    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size tile_test_switch, . - tile_test_switch\n");

/* The stack as the switch leaves it: six registers, where to go on, and no caller. */
void make_fiber(Fiber *fiber, void *stack, size_t bytes, void (*main)()) {
    enum { REGISTERS = 6 };
    const uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + bytes) / 16 * 16;
    uintptr_t *at = reinterpret_cast<uintptr_t *>(top) - (REGISTERS + 2);
    for (int k = 0; k < REGISTERS; k++) at[k] = 0;
    at[REGISTERS] = reinterpret_cast<uintptr_t>(main);
    at[REGISTERS + 1] = 0;
    fiber->stack = at;
}

void switch_fiber(Fiber *from, Fiber *to) {
    tile_test_switch(&from->stack, to->stack);
}
#else
void make_fiber(Fiber *fiber, void *stack, size_t bytes, void (*main)()) {
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = bytes;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, main, 0);
}

void switch_fiber(Fiber *from, Fiber *to) {
    swapcontext(&from->context, &to->context);
}
#endif
