/* launch.h: a launch that is about to run; private to tape/. */
#ifndef TILE_TAPE_LAUNCH_H
#define TILE_TAPE_LAUNCH_H

#include "tape/tape.h"

/* A launch's arguments by parameter. */
typedef struct tape_launch {
    tile_kernel *kernel;
    const tile_program *program;
    int64_t grid[TILE_GRID_RANK];
    int count;
    tile_array *array[TILE_PARAMS_MAX]; /* NULL: a scalar */
    tile_scalar scalar[TILE_PARAMS_MAX];
    tile_buffer *fresh[TILE_PARAMS_MAX]; /* what replaces a whole overwritten buffer */
    bool may_fail;                       /* it may end in an execution error */
} tape_launch;

/* Fills array and scalar. kernel, program and count are there. */
tile_status tape_take_arguments(tape_launch *l, tile_args args) TILE_MUST_USE;

#endif
