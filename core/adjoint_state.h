/* adjoint_state.h: the walk that makes adjoint programs; private to core/adjoint*.c. */
#ifndef TILE_CORE_ADJOINT_STATE_H
#define TILE_CORE_ADJOINT_STATE_H

#include "core/adjoint.h"
#include "core/kernel.h"

/* Gather form: values are computed on the core widened by the windows' spread. */
typedef struct tile_widening {
    bool on;
    int rank;
    int64_t low[TILE_RANK_MAX], high[TILE_RANK_MAX]; /* smallest and largest shift of the loads */
    int64_t core[TILE_RANK_MAX];
    int axis[TILE_RANK_MAX];
} tile_widening;

/* A load's adjoint in gather form. */
typedef struct tile_collected {
    int32_t node;
    tile adjoint;
} tile_collected;

struct tile_adjoint {
    const tile_kernel *kernel;
    const tile_program *forward;
    const tile_analysis *analysis; /* of forward */
    const tile_adjoint_key *key;
    tile_builder *b;

    /* Per forward value. */
    tile *primal, *adjoint;
    bool *wants;     /* a gradient is wanted for it */
    int32_t *slot;   /* its slot in the stash, or -1 */
    int32_t *region; /* per forward region: the adjoint's region, or -1 */

    uint32_t targets; /* parameters whose loads pass a gradient on */
    uint32_t grads;   /* classes with a gradient parameter */
    tile_param grad[TILE_PARAMS_MAX];
    bool clears; /* stores take: read and clear; else they only read */

    tile_widening wide;
    tile_collected *collected;
    int32_t collected_count, collected_capacity;

    int32_t *kept; /* forward value of each slot */
    int32_t kept_count, kept_capacity;

    const tile_node *node; /* whose rule runs */
    tile_inputs inputs;    /* of it */
};

/* The class of a parameter: the first one bound to the same elements. */
static inline int tile_class_of(const tile_adjoint_key *key, int param) {
    return key->same[param];
}
uint32_t tile_class_members(const tile_program *forward, const tile_adjoint_key *key, int cls);

/* Whether a load's values cannot be read again from the arrays as they were before the launch. */
bool tile_load_must_be_kept(const tile_program *forward, const tile_analysis *analysis,
                            const tile_adjoint_key *key, const tile_node *load);

/* A builder with the forward kernel's parameters, then gradients of the classes in grads. */
tile_status tile_adjoint_begin(tile_adjoint *a, const tile_kernel *kernel,
                               const tile_program *forward, const tile_analysis *analysis,
                               const tile_adjoint_key *key, uint32_t targets,
                               uint32_t grads) TILE_MUST_USE;
void tile_adjoint_end(tile_adjoint *a);

/* Walks the forward program backwards. */
void tile_adjoint_walk(tile_adjoint *a);

/* Parts of it: a region, a loop (adjoint_loop.c); whether a result of a node has an adjoint. */
void tile_adjoint_walk_region(tile_adjoint *a, int32_t region);
void tile_adjoint_walk_loop(tile_adjoint *a, const tile_node *loop);
bool tile_adjoint_any(const tile_adjoint *a, const tile_node *node);

/* The value of a forward value in the adjoint program: recomputed, or kept. */
tile tile_adjoint_primal(tile_adjoint *a, int32_t value);

/* A forward node again, with inputs taken from tile_adjoint_primal. */
tile tile_adjoint_clone(tile_adjoint *a, const tile_node *node);

/* The offset of a node's window, shift left out, as values of the adjoint program. */
tile_offset tile_adjoint_window(tile_adjoint *a, const tile_node *node);

/* Adds to the adjoint of a forward value. */
void tile_adjoint_add_to(tile_adjoint *a, int32_t value, tile contribution);

/* A constant zero like a forward value. */
tile tile_adjoint_zero(tile_adjoint *a, int32_t value);

/* Finishes the program: pruned, verified, ready to run. */
tile_status tile_adjoint_finish(tile_adjoint *a, tile_executable **exe) TILE_MUST_USE;

/* The gather plan of a field-form kernel. *made is false when it cannot be had. */
tile_status tile_adjoint_plan_field(tile_kernel *kernel, tile_adjoint_plan *plan,
                                    bool *made) TILE_MUST_USE;

/* A program without sub-tiles at constant offsets: each is pushed into the window loads. */
tile_status tile_program_normalise(tile_context *ctx, const tile_program *program,
                                   const tile_analysis *analysis,
                                   tile_program *normal) TILE_MUST_USE;

/* Appends a step, noting what it reads. exe is taken. */
void tile_adjoint_plan_add(tile_adjoint_plan *plan, const tile_adjoint *a, tile_adjoint_kind kind,
                           tile_executable *exe);

#endif
