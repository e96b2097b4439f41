/* builder.h: how a program grows. Used by the public builder calls, formulas and the adjoint. */
#ifndef TILE_CORE_BUILDER_H
#define TILE_CORE_BUILDER_H

#include "core/program.h"

struct tile_builder {
    tile_context *ctx;
    tile_program program;
    int32_t region;     /* where nodes are added now */
    tile_status status; /* the first error; later calls do nothing */
    char message[512];
    int32_t epoch; /* effects so far */
    int32_t *hash; /* open table of pure nodes, for reuse of equal ones */
    int32_t hash_capacity;
    const char *file; /* where the adjoint's or a formula's nodes come from; NULL: tile_here */
    int line;
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

/* A structure node without inputs and with one rank-0 result, in the kernel's body. */
tile tile_builder_add_structure(tile_builder *b, const tile_node *node, tile_dtype dtype);

/* The rank-0 value of scalar parameter index. */
tile tile_builder_scalar_param(tile_builder *b, int32_t index);

/* Block index, grid or domain size along an axis; one node each. */
tile tile_builder_axis_value(tile_builder *b, const tile_op *op, int axis);

tile_builder *tile_builder_create(tile_context *ctx, const char *name);
void tile_builder_destroy(tile_builder *b);

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
