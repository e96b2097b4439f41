/* emulator_calls.h: what the emulator gives to the code that it runs. */
#ifndef TILE_TESTS_EMULATOR_CALLS_H
#define TILE_TESTS_EMULATOR_CALLS_H

#include <stdint.h>

struct emulator_dim {
    unsigned x, y, z;
};

struct emulator_calls {
    emulator_dim thread, block, block_dim, grid_dim;
    unsigned char *shared;
    void (*barrier)(int line);             /* of the block */
    void (*meet)(unsigned mask, int line); /* of a warp's lanes */
    void (*put)(uint64_t value);
    uint64_t (*peer)(int lane); /* what a lane of the warp has put */
};

#endif
