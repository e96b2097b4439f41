/* types_api.h: statuses and the types that all calls share. */
#ifndef TILE_CORE_TYPES_API_H
#define TILE_CORE_TYPES_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A status that is dropped is a warning. */
#define TILE_MUST_USE __attribute__((warn_unused_result))

/* What the shared library exports. */
#define TILE_API __attribute__((visibility("default")))

/* The statuses, each with its text. */
/* size: a table, one row a status. */
#define TILE_STATUS_LIST(X)                                                     \
    X(TILE_OK, "success")                                                       \
    X(TILE_E_ARGUMENT, "an argument is out of range or missing")                \
    X(TILE_E_SHAPE, "shapes do not agree")                                      \
    X(TILE_E_DTYPE, "element types do not agree")                               \
    X(TILE_E_STATE, "the object is not in a state for this call")               \
    X(TILE_E_FORMULA, "the formula does not parse")                             \
    X(TILE_E_NO_ADJOINT, "no adjoint exists on a path that carries a gradient") \
    X(TILE_E_MEMORY, "memory ran out")                                          \
    X(TILE_E_FILE, "a file cannot be read or written")                          \
    X(TILE_E_EXECUTION, "a launch failed while it ran")                         \
    X(TILE_E_DEVICE, "a device call failed")

/* What a call came to. */
#define TILE_STATUS_ENUM(name, text) name,
typedef enum tile_status { TILE_STATUS_LIST(TILE_STATUS_ENUM) TILE_STATUS_COUNT } tile_status;
#undef TILE_STATUS_ENUM

/* tile_status_text: a few words on a status, a constant string.
 *
 * special  "unknown status" for a value outside the list
 */
TILE_API const char *tile_status_text(tile_status status);

/* tile_last_error: one sentence on the last failure on the calling thread, valid until the next
 one.
 *
 * special  "" when nothing failed yet
 */
TILE_API const char *tile_last_error(void);

/* The limits of the library. */
enum {
    TILE_RANK_MAX = 6,     /* dimensions of an array or tile */
    TILE_PARAMS_MAX = 32,  /* parameters of a kernel */
    TILE_CARRIED_MAX = 16, /* tiles carried by a loop; entries of a TILE_LIST */
    TILE_GRID_RANK = 3     /* dimensions of a grid of blocks */
};

/* Element types. TILE_BOOL is one byte, 0 or 1. TILE_F16 is IEEE 754 binary16, TILE_BF16 the upper
 * half of a float32: stored in 16 bits, computed in float32 and rounded once an op, to nearest,
 * ties to even. Values are stable: files hold them. */
typedef enum tile_dtype {
    TILE_F32,
    TILE_F64,
    TILE_I32,
    TILE_I64,
    TILE_U8,
    TILE_U32,
    TILE_U64,
    TILE_BOOL,
    TILE_F16,
    TILE_BF16,
    TILE_I8,
    TILE_I16,
    TILE_U16,
    TILE_DTYPES,
    TILE_STRUCTS = 1 << 12, /* tile_dtype_struct gives types from here on */
    TILE_STRUCTS_END = 1 << 13
} tile_dtype;

/* A device; an array on it; a kernel while it is built, and finished; a record of launches. */
typedef struct tile_context tile_context;
typedef struct tile_array tile_array;
typedef struct tile_builder tile_builder;
typedef struct tile_kernel tile_kernel;
typedef struct tape tape;

/* Where a block keeps a tile on a GPU: each lane its elements, or all of it where every lane reads
 * it. The CPU makes no difference, but for the limit on shared memory. */
typedef enum tile_space { TILE_REGISTER, TILE_SHARED } tile_space;

/* Extents, first dimension slowest (C order). Rank 0 is one element. */
typedef struct tile_shape {
    int rank;
    int64_t extent[TILE_RANK_MAX];
} tile_shape;

/* A value inside a kernel. Copy it freely; it lives as long as its builder. */
typedef struct tile {
    tile_builder *builder;
    int32_t id;
} tile;

/* An array parameter of a kernel. */
typedef struct tile_param {
    tile_builder *builder;
    int32_t index;
} tile_param;

/* Where a window begins: one rank-0 integer tile per dimension, plus a constant shift.
 * Rank 0 (TILE_AT_ZERO) means the origin whatever the rank. */
typedef struct tile_offset {
    int rank;
    tile at[TILE_RANK_MAX];
    int64_t shift[TILE_RANK_MAX];
} tile_offset;

/* A few tiles. */
typedef struct tile_list {
    int count;
    tile item[TILE_CARRIED_MAX];
} tile_list;

/* Blocks along each grid axis. */
typedef struct tile_grid {
    int64_t blocks[TILE_GRID_RANK];
} tile_grid;

/* What an argument of a launch can be. */
typedef enum tile_arg_kind { TILE_ARG_ARRAY, TILE_ARG_INT, TILE_ARG_REAL } tile_arg_kind;

/* One argument of a launch. */
typedef struct tile_arg {
    tile_arg_kind kind;
    union {
        tile_array *array;
        int64_t integer;
        double real;
    } as;
} tile_arg;

/* The arguments of a launch, in the order of the kernel's parameters. */
typedef struct tile_args {
    int count;
    const tile_arg *arg;
} tile_args;

#ifdef __cplusplus
}
#endif
#endif
