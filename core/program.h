/* program.h: the kernel program: values, nodes, regions; what builder, executors, adjoint share.
 *
 * A program is a list of nodes in static single assignment form. Node order within a region is the
 * order of effects. Everything refers to everything by index, so a program is plain data. */
#ifndef TILE_CORE_PROGRAM_H
#define TILE_CORE_PROGRAM_H

#include "core/core_api.h"
#include "core/op.h"
#include "core/struct_dtype.h"

/* A tile of the program. */
typedef struct tile_value {
    tile_dtype dtype;
    tile_shape shape;
    int32_t node;   /* that makes it; for an argument of a region: the loop */
    int32_t result; /* which of its results; for an argument: -1 - which of the arguments */
    int32_t region; /* where it can be used: here and in regions inside */
    bool shared;    /* in shared memory */
} tile_value;

typedef struct tile_node {
    const tile_op *op;
    int32_t in;   /* first of its inputs in program.input */
    int32_t n_in; /* tile inputs, then window offsets (one per array dimension), then bounds */
    int32_t out;  /* first value it makes; the others follow */
    int32_t n_out;
    int32_t param;  /* array parameter, or -1 */
    int32_t region; /* body of a loop, or -1 */
    int32_t parent; /* region it stands in */
    bool bounded;   /* window op: after the offsets come low and high, one pair per dimension */
    int32_t epoch;  /* effects before it; equal loads of one epoch are one load */
    tile_attrs attrs;
    const char *file; /* of the builder call; a string constant of the caller's program */
    int line;
    const char *what; /* within: what is looked at; a string constant, too */
} tile_node;

/* A list of nodes. Region 0 is the kernel's body. A loop's body has arguments: the index (int64),
 * then the carried tiles; yield lists the next carried tiles. The loop node's inputs are the count,
 * then the initial carried tiles; its results are the final carried tiles. A while is a loop whose
 * count is the most iterations there may be, and whose first carried tiles are its own: go (bool,
 * the body runs while it is true), then trips (int64, how often the body ran). */
typedef struct tile_region {
    int32_t *node;
    int32_t count, capacity;
    int32_t owner;    /* loop node, or -1 */
    int32_t argument; /* first value id of the arguments; they are 1 + carried values */
    int32_t *yield;
    int32_t yield_count;
} tile_region;

typedef enum tile_param_kind { TILE_PARAM_ARRAY, TILE_PARAM_INT, TILE_PARAM_REAL } tile_param_kind;

typedef struct tile_param_info {
    char name[2 * TILE_NAME_BYTES]; /* of a member of a struct: parameter.member */
    tile_param_kind kind;
    tile_dtype dtype;
    int rank;
    int32_t value; /* the rank-0 value of a scalar parameter, or -1 */
} tile_param_info;

/* Values that the adjoint needs and cannot recompute are kept in a stash by the augmented forward
 * program (op "keep") and read back by the adjoint program (op "kept"). Slot s of block b holds
 * trips[s] tiles of bytes[s] bytes, one per iteration of the loops around it. */
typedef struct tile_slot {
    tile_dtype dtype;
    tile_shape shape;
    int32_t loops;                      /* how many loops around it */
    int32_t count_value[TILE_RANK_MAX]; /* their trip counts, values of this program, outer first */
} tile_slot;

/* An adjoint has the forward kernel's parameters and their gradients. */
enum { TILE_PROGRAM_PARAMS = 2 * TILE_PARAMS_MAX };

typedef struct tile_program {
    char name[64];
    tile_param_info param[TILE_PROGRAM_PARAMS];
    int32_t param_count;
    tile_value *value;
    int32_t value_count, value_capacity;
    tile_node *node;
    int32_t node_count, node_capacity;
    int32_t *input;
    int32_t input_count, input_capacity;
    tile_region *region;
    int32_t region_count, region_capacity;
    tile_slot *slot;
    int32_t slot_count, slot_capacity;
    bool reverse; /* blocks count as run in reverse row-major order (adjoint of a scatter) */
} tile_program;

static inline const tile_value *tile_node_out(const tile_program *p, const tile_node *n, int k) {
    return &p->value[n->out + k];
}
static inline int32_t tile_node_in(const tile_program *p, const tile_node *n, int k) {
    return p->input[n->in + k];
}

enum { TILE_LOOP_GO, TILE_LOOP_TRIPS, TILE_LOOP_OWN }; /* the first carried tiles of a while */

static inline bool tile_loop_is_while(const tile_node *n) {
    return n->attrs.n[1] == 1;
}

/* How many of a loop's first carried tiles are its own. */
static inline int32_t tile_loop_own(const tile_node *n) {
    return tile_loop_is_while(n) ? TILE_LOOP_OWN : 0;
}

/* Whether a value of region inner may use one of region outer. */
bool tile_region_within(const tile_program *program, int32_t inner, int32_t outer);

bool tile_program_has_loop(const tile_program *program);

/* Whether a rank-0 integer value is known at the launch: parameters, constants, their maths. */
bool tile_value_is_launch_known(const tile_program *program, int32_t value);

/* A copy that shares nothing. */
tile_status tile_program_copy(const tile_program *from, tile_program *to) TILE_MUST_USE;

/* Growing: each returns an index, or -1 with the error set. */
int32_t tile_program_add_value(tile_program *p, tile_dtype dtype, tile_shape shape, int32_t node,
                               int32_t result, int32_t region);
int32_t tile_program_add_node(tile_program *p, const tile_node *node, const int32_t *in);
int32_t tile_program_add_region(tile_program *p, int32_t owner);
tile_status tile_region_append(tile_program *p, int32_t region, int32_t node) TILE_MUST_USE;

/* Frees what a program owns, not the struct. */
void tile_program_clear(tile_program *program);

/* Drops nodes without effect whose results nobody uses, and renumbers. */
tile_status tile_program_prune(tile_program *program) TILE_MUST_USE;

/* One sentence on the first broken rule: operand order, types, shapes, parameters. */
tile_status tile_program_verify(const tile_program *program) TILE_MUST_USE;

tile_status tile_program_print(const tile_program *program, FILE *out) TILE_MUST_USE;

/* Whether a node makes a value that a launch fixes: parameters, sizes. */
bool tile_node_is_launch_leaf(const tile_node *node);

/* Whether a node does something besides making its results. */
bool tile_node_has_effect(const tile_program *program, const tile_node *node);

/* The structure's own ops. */
extern const tile_op tile_op_param;       /* rank-0 scalar parameter; attrs.n[0]: its index */
extern const tile_op tile_op_block_index; /* attrs.n[0]: axis */
extern const tile_op tile_op_grid_size;   /* attrs.n[0]: axis; of this launch */
extern const tile_op tile_op_domain_size; /* attrs.n[0]: axis; of the forward launch (adjoints) */
extern const tile_op tile_op_extent;      /* attrs.n[0]: array parameter, n[1]: dimension */
extern const tile_op tile_op_within;      /* inputs: value, low, high; attrs.n[0]: 1 + dimension */
extern const tile_op tile_op_loop;        /* attrs.n[0]: 1 when it runs from the last iteration;
                                      attrs.n[1]: 1 when it is a while */
extern const tile_op tile_op_keep; /* attrs.n[0]: slot; inputs: tile, then iteration numbers */
extern const tile_op tile_op_kept; /* attrs.n[0]: slot; inputs: iteration numbers */

#endif
