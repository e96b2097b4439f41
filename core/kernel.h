/* kernel.h: a finished kernel and what is made of it for backward. */
#ifndef TILE_CORE_KERNEL_H
#define TILE_CORE_KERNEL_H

#include "core/builder.h"
#include "core/exec.h"

/* The elements that windows at block * core + low reach, over a whole grid. */
typedef struct tile_cover {
    bool known; /* false: nothing can be said */
    int rank;
    int64_t low[TILE_RANK_MAX];    /* first element of block 0 */
    int64_t extent[TILE_RANK_MAX]; /* of one window */
    int axis[TILE_RANK_MAX];       /* grid axis that moves it, by step; -1: none */
    int64_t step[TILE_RANK_MAX];
    int64_t margin[TILE_GRID_RANK]; /* blocks beyond the forward grid */
} tile_cover;

/* Whether that is every element of an array, for a forward grid. */
bool tile_cover_is_whole(const tile_cover *cover, const int64_t *grid, const int64_t *extent);

/* What a store overwrites, whatever the data; left as it is (unknown) when that cannot be said. */
void tile_cover_of_store(const tile_program *program, const tile_analysis *analysis,
                         const tile_node *node, tile_cover *cover);

/* What an adjoint depends on, known at a launch. Bits are array parameters of the forward kernel.
 * */
typedef struct tile_adjoint_key {
    uint32_t active;     /* gradients are wanted for what these hold before the launch */
    uint32_t upstream;   /* what these hold after the launch may have an adjoint */
    uint32_t accumulate; /* these hold an adjoint already: a gather adds, else it overwrites */
    int8_t same[TILE_PARAMS_MAX]; /* the first parameter bound to the same elements */
    bool apart; /* no two parameters share memory but for those that are the same, and no two
                   blocks do the same thing twice */
} tile_adjoint_key;

typedef enum tile_adjoint_kind {
    TILE_ADJOINT_GATHER,   /* writes each element of its targets' adjoints once */
    TILE_ADJOINT_REDUCE,   /* adds to adjoints, reads what came in without clearing it */
    TILE_ADJOINT_IN_PLACE, /* turns the adjoints of stored arrays into those before, in place */
    TILE_ADJOINT_CLEAR,    /* clears an adjoint where the forward kernel stored */
    TILE_ADJOINT_SCATTER   /* the general form: blocks in reverse order, adds and takes */
} tile_adjoint_kind;

/* One kernel of the adjoint. Parameters: the forward kernel's, then the gradient of each parameter
 * in grads, in order. A gradient stands for its class: the parameters that are the same. */
typedef struct tile_adjoint_step {
    tile_adjoint_kind kind;
    tile_executable *exe;
    uint32_t grads;
    uint32_t uses;                  /* of these: read or written at all */
    uint32_t targets;               /* of these: written */
    int64_t margin[TILE_GRID_RANK]; /* blocks along each axis beyond the forward grid */
} tile_adjoint_step;

enum { TILE_ADJOINT_STEPS = TILE_PARAMS_MAX + 3 };

typedef struct tile_adjoint_plan {
    struct tile_adjoint_plan *next;
    tile_adjoint_key key;
    uint32_t values; /* array parameters whose values before the launch are read */
    uint32_t sized;  /* array parameters whose extents are asked for */
    uint32_t gather; /* parameters whose adjoint a gather step makes */
    tile_cover cover[TILE_PARAMS_MAX]; /* what gather reaches; what the kernel stores, for clears */
    bool own;                          /* the steps belong to the user's adjoint kernel */
    int count;
    tile_adjoint_step step[TILE_ADJOINT_STEPS];
    tile_executable *augmented; /* forward that also keeps values; NULL: none needed */
} tile_adjoint_plan;

struct tile_kernel {
    tile_context *ctx;
    int64_t refs; /* not atomic: a context is used by one thread at a time */
    tile_executable *forward;
    tile_launch_arg arg[TILE_PARAMS_MAX]; /* what a launch is given */
    int32_t arg_count;
    size_t shared_bytes;                /* of a block */
    tile_cover stores[TILE_PARAMS_MAX]; /* what the kernel overwrites whatever the data */
    uint32_t floats, reads, writes;     /* array parameters */
    uint32_t reads_after_write;         /* read after this block or another may have written */
    unsigned axes; /* grid axes along which blocks do something else, and store elsewhere */
    tile_adjoint_plan *plans;
    tile_kernel *own_adjoint; /* given by the user */
};

tile_kernel *tile_kernel_hold(tile_kernel *kernel);

/* The plan for a key; made when first asked for. */
tile_status tile_kernel_adjoint(tile_kernel *kernel, const tile_adjoint_key *key,
                                const tile_adjoint_plan **plan) TILE_MUST_USE;

void tile_adjoint_plan_destroy(tile_adjoint_plan *plan);

#endif
