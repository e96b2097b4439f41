/* ready.h: the kernels of the ready-made launches; private to tape/. */
#ifndef TILE_TAPE_READY_H
#define TILE_TAPE_READY_H

#include "tape/tape.h"

enum {
    TAPE_READY_WIDTH = 512, /* elements of a block of an elementwise kernel */
    TAPE_READY_ARRAYS = 4
};

typedef enum tape_ready_task {
    TAPE_READY_FILL,
    TAPE_READY_COPY,
    TAPE_READY_AXPY,
    TAPE_READY_ADAM,
    TAPE_READY_SUM,
    TAPE_READY_DOT,
    TAPE_READY_MISFIT,
    TAPE_READY_ADD
} tape_ready_task;

typedef struct tape_recipe {
    const char *call;
    int arrays; /* of one shape; a sum has its result besides */
    const char *names[TAPE_READY_ARRAYS];
} tape_recipe;

const tape_recipe *tape_ready_recipe(tape_ready_task what);

/* Which kernel. result: of sums; of an ADD: what is added. */
typedef struct tape_ready_key {
    tape_ready_task what;
    tile_dtype dtype, result;
    int rank;
    int64_t width;
} tape_ready_key;

/* The kernel, made when first asked for. Parameters: above rank 3 the extents of the dimensions
 * from 1 on but the last two; arrays; a sum's array; scalars. */
tile_status tape_ready_kernel(tile_context *ctx, const tape_ready_key *like,
                              tile_kernel **kernel) TILE_MUST_USE;

/* Grid axes of arrays of a rank; blocks along each. */
int tape_ready_axes(int rank);
tile_grid tape_ready_grid(tile_shape shape, int64_t width);

#endif
