/* elementwise_strips.h: the strips of each instruction set, by row and element type. */
#ifndef TILE_OPS_ELEMENTWISE_STRIPS_H
#define TILE_OPS_ELEMENTWISE_STRIPS_H

#include "core/op.h"

/* The rows in order. */
enum {
#define UNARY(name, ...) TILE_ROW_##name,
#define BINARY UNARY
#define TERNARY UNARY
#define MATH1 UNARY
#define MATH2 UNARY
#define COMPARE UNARY
#define SELECT UNARY
#define CAST UNARY
#include "ops/elementwise/elementwise.def"
#undef UNARY
#undef BINARY
#undef TERNARY
#undef MATH1
#undef MATH2
#undef COMPARE
#undef SELECT
#undef CAST
    TILE_ROWS
};

/* Indexed by the element type (of operand b for select); NULL: not among the types of the row. */
typedef struct tile_strips {
    tile_strip row[TILE_ROWS][TILE_DTYPES];
    tile_strip cast[TILE_DTYPES][TILE_DTYPES]; /* from, to */
} tile_strips;

extern const tile_family tile_ops_elementwise;

extern const tile_strips tile_strips_base; /* runs on any CPU */
#ifdef __x86_64__
extern const tile_strips tile_strips_avx2; /* needs AVX2 and FMA */
#endif

#endif
