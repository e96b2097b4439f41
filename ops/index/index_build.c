/* index_build.c: the builder functions of the family. */
#include "core/array.h"
#include "core/builder.h"
#include "ops/index/index.h"
#include "ops/index/index_ops.h"

tile(tile_gather)(tile x, tile indices, int axis) {
    const tile_emission e = {.op = &tile_index_ops[GATHER],
                             .n_in = 2,
                             .in = {x, tile_builder_indices(x.builder, "tile_gather", indices)},
                             .attrs.n = {axis}};
    return tile_emit(x.builder, &e);
}

static tile emit_scatter(const char *call, int op, const tile *in, int axis) {
    const tile_emission e = {.op = &tile_index_ops[op],
                             .n_in = 3,
                             .in = {in[0], in[2], tile_builder_indices(in[0].builder, call, in[1])},
                             .attrs.n = {axis}};
    return tile_emit(in[0].builder, &e);
}

tile(tile_scatter)(tile dst, tile indices, tile src, int axis) {
    return emit_scatter("tile_scatter", SCATTER, (const tile[]){dst, indices, src}, axis);
}

tile(tile_scatter_add)(tile dst, tile indices, tile src, int axis) {
    return emit_scatter("tile_scatter_add", SCATTER_ADD, (const tile[]){dst, indices, src}, axis);
}

tile(tile_cumsum)(tile x, int axis, unsigned how) {
    const tile_emission e = {
        .op = &tile_index_ops[CUMSUM], .n_in = 1, .in = {x}, .attrs.n = {axis, how}};
    return tile_emit(x.builder, &e);
}
