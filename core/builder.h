/* builder.h: how a program grows. Used by the public builder calls, formulas and the adjoint. */
#ifndef TILE_CORE_BUILDER_H
#define TILE_CORE_BUILDER_H

#include "core/program.h"

/* An argument of a launch: the program's parameters from first on, one or a struct's members. */
typedef struct tile_launch_arg {
    int32_t first;
    tile_dtype dtype; /* of an array */
    int rank;
    bool injective; /* an array in which two places can be one element is refused */
    char name[TILE_NAME_BYTES];
} tile_launch_arg;

/* A struct tile: a value for each member. */
typedef struct tile_struct_value {
    tile_dtype dtype;
    tile_shape shape;
    int32_t part[TILE_MEMBERS_MAX];
} tile_struct_value;

struct tile_builder {
    tile_context *ctx;
    tile_program program;
    int32_t region;     /* where nodes are added now */
    tile_status status; /* the first error; later calls do nothing */
    char message[512];
    int32_t epoch; /* effects so far */
    int32_t *hash; /* open table of pure nodes, for reuse of equal ones */
    int32_t hash_capacity;
    tile_launch_arg arg[TILE_PARAMS_MAX];
    int32_t arg_count;
    tile_struct_value *structs;
    int32_t struct_count, struct_capacity;
    const char *file; /* where the adjoint's or a formula's nodes come from; NULL: tile_here */
    int line;
    int32_t *state; /* per state: the value that it is now, or -1 when its loop has ended */
    int32_t state_count, state_capacity;
};

/* What to add. Zero means absent. */
typedef struct tile_emission {
    const tile_op *op;
    int n_in; /* tile inputs, before offsets */
    tile in[TILE_OP_IN];
    tile_param array;   /* ops with an access; builder NULL: none */
    tile_offset at;     /* ops with an access, and view, assign (shift only or with tiles) */
    const tile *bounds; /* NULL, or low and high per dimension: 2 * rank rank-0 int64 tiles */
    tile_attrs attrs;
    bool has_shape, has_dtype;
    tile_shape shape; /* wanted of the result, where the op cannot know */
    tile_dtype dtype;
} tile_emission;

/* Adds a node and returns its first result (or a tile without id for an op without results). Checks
 * operands, broadcasts those of elementwise ops, applies the shape rule, reuses an equal pure node.
 * On an error the builder's status is set and the tile {builder, -1} returned; operands that are
 * already in error are passed through silently. */
tile tile_emit(tile_builder *b, const tile_emission *emission);

/* 16-bit floats (builder_promote.c). tile_emit_promoted: emits in float32 what has no kernel for
 * them; false: nothing of the kind, nothing was done. tile_infer_promoted: the shape rule of such
 * an emission. tile_widened: t, or t cast to float32 where it is of a 16-bit float. */
bool tile_emit_promoted(tile_builder *b, const tile_emission *emission, tile *result);
tile_status tile_infer_promoted(tile_infer *in) TILE_MUST_USE;
tile tile_widened(tile t);

/* Result k of the node that made t. */
tile tile_result(tile t, int k);

/* Shorthand for elementwise ops by name; n operands. */
tile tile_emit_elementwise(tile_builder *b, const char *op, int n, const tile *in);

/* Loops, with any number of carried tiles. reverse: the index runs from count - 1 down to 0.
 * Between begin and end nodes go into the body; begin returns the loop node, or -1 on an error. */
int32_t tile_builder_loop_begin(tile_builder *b, tile count, int n, const tile *initial,
                                bool reverse);
tile tile_builder_loop_argument(tile_builder *b, int32_t loop, int k); /* 0: index, then carried */
void tile_builder_loop_end(tile_builder *b, int32_t loop, int n, const tile *next);
tile tile_builder_loop_result(tile_builder *b, int32_t loop, int k);

/* A while: the body runs while go (rank-0 bool) is true, most (known at the launch) times at most.
 * Arguments and results are numbered as those of a counted loop; trips: how often the body ran. */
int32_t tile_builder_while_begin(tile_builder *b, tile go, tile most, int n, const tile *initial);
void tile_builder_while_end(tile_builder *b, int32_t loop, tile go, int n, const tile *next);
tile tile_builder_while_trips(tile_builder *b, int32_t loop);

/* States: tiles that calls replace as the kernel goes on, such as what a stack holds. The loops of
 * the public calls carry those that are there when they begin. add returns the number of the state,
 * or -1 on an error; a state that was added in a loop that has ended is no good tile. */
int32_t tile_builder_state_add(tile_builder *b, tile initial);
tile tile_builder_state(tile_builder *b, int32_t state);
void tile_builder_state_set(tile_builder *b, int32_t state, tile next);

/* A structure node without inputs and with one rank-0 result, in the kernel's body. */
tile tile_builder_add_structure(tile_builder *b, const tile_node *node, tile_dtype dtype);

/* Adds an argument that stands for count parameters like info, all of the argument's name. The
 * first one's index, or -1 with the builder's error set. */
int32_t tile_builder_add_param(tile_builder *b, const char *call, const tile_param_info *info,
                               const char *name, int count);

/* The array that a parameter stands for, of structs or not. NULL: it is no array parameter of the
 * builder. */
tile_launch_arg *tile_builder_array(tile_builder *b, tile_param a);

/* The rank-0 value of scalar parameter index. */
tile tile_builder_scalar_param(tile_builder *b, int32_t index);

/* Block index, grid or domain size along an axis; one node each. */
tile tile_builder_axis_value(tile_builder *b, const tile_op *op, int axis);

/* The extent of array parameter param along dimension d; one node each. */
tile tile_builder_extent(tile_builder *b, int32_t param, int d);

/* An execution error unless low <= value < high, rank-0 int64 tiles. what: a string constant; d:
 * the dimension it is said of, or -1. */
void tile_builder_within(tile_builder *b, tile value, tile low, tile high, const char *what, int d);

/* A shape that a tile can have; an error of the builder, naming call, for any other. */
bool tile_builder_check_shape(tile_builder *b, const char *call, tile_shape shape);

/* A rank-0 integer tile as int64; an error of the builder, naming call and what, for any other. */
tile tile_builder_int64(tile_builder *b, const char *call, const char *what, tile t);

/* Indices as int64; an error of the builder, naming call, for what is neither int32 nor int64. */
tile tile_builder_indices(tile_builder *b, const char *call, tile indices);

tile_builder *tile_builder_create(tile_context *ctx, const char *name);
void tile_builder_destroy(tile_builder *b);

/* The place of the call in the user's program. */
const char *tile_builder_file(const tile_builder *b);
int tile_builder_line(const tile_builder *b);

/* Notes the first error, with the place of the call. Returns the error tile. */
tile tile_builder_fail(tile_builder *b, tile_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The builder of the first tile that has one; NULL: none (an error was noted by tile_last_error).
 * */
tile_builder *tile_builder_of(const tile *in, int n);

/* Type and shape of a tile; valid only when tile_is_good. */
bool tile_is_good(tile t);
tile_dtype tile_dtype_of(tile t);
tile_shape tile_shape_of_tile(tile t);

/* A constant tile (op "full"). */
tile tile_constant(tile_builder *b, tile_dtype dtype, tile_shape shape, double value);

/* NumPy broadcasting of two shapes. false: they do not agree. */
bool tile_shape_broadcast(tile_shape a, tile_shape b, tile_shape *out);

/* Parses a formula over named tiles and emits it; products and quotients with the operand named
 * guard (NULL: none) are guarded: 0 where it is 0. For derivative formulas. */
tile tile_formula_emit(tile_builder *b, const char *formula, int n, const char *const *names,
                       const tile *operands, const char *guard);

#endif
