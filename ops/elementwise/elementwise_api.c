/* elementwise_api.c: the public function of each row; prototypes are made by make_header.awk. */
#include "core/builder.h"
#include "ops/elementwise/elementwise_ops.h"
#include "ops/elementwise/elementwise_strips.h"

static tile emit(int row, int n, const tile *in) {
    tile_builder *b = tile_builder_of(in, n);
    if (!b) return (tile){NULL, -1};
    tile_emission emission = {.op = &tile_ops_elementwise.ops[row], .n_in = n};
    for (int k = 0; k < n; k++) emission.in[k] = in[k];
    return tile_emit(b, &emission);
}

static tile emit_cast(int row, tile a, tile_dtype dtype) {
    if (!a.builder) return (tile){NULL, -1};
    const tile_emission emission = {.op = &tile_ops_elementwise.ops[row],
                                    .n_in = 1,
                                    .in = {a},
                                    .has_dtype = true,
                                    .dtype = dtype};
    return tile_emit(a.builder, &emission);
}

/* The parentheses keep the header's macros of the same names away. */
#define UNARY(name, ...)                              \
    tile(tile_##name)(tile a) {                       \
        return emit(TILE_ROW_##name, 1, (tile[]){a}); \
    }
#define BINARY(name, ...)                                \
    tile(tile_##name)(tile a, tile b) {                  \
        return emit(TILE_ROW_##name, 2, (tile[]){a, b}); \
    }
#define TERNARY(name, ...)                                  \
    tile(tile_##name)(tile a, tile b, tile c) {             \
        return emit(TILE_ROW_##name, 3, (tile[]){a, b, c}); \
    }
#define MATH1 UNARY
#define MATH2 BINARY
#define COMPARE BINARY
#define SELECT TERNARY
#define CAST(name, ...)                              \
    tile(tile_##name)(tile a, tile_dtype dtype) {    \
        return emit_cast(TILE_ROW_##name, a, dtype); \
    }
#include "ops/elementwise/elementwise.def"
