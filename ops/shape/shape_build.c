/* shape_build.c: the builder functions of the family. */
#include "core/builder.h"
#include "core/struct_tile.h"
#include "ops/shape/shape.h"
#include "ops/shape/shape_ops.h"

static tile emit_full(const char *call, tile_builder *b, tile_dtype dtype, tile_shape shape,
                      double value) {
    if (tile_struct_of(dtype) && value == 0) return tile_struct_zeros(b, dtype, shape);
    if (!tile_dtype_valid(dtype))
        return tile_builder_fail(b, TILE_E_DTYPE, "%s: dtype %d does not exist", call, (int)dtype);
    if (!tile_is_float(dtype) && !tile_dtype_holds(dtype, value))
        return tile_builder_fail(b, TILE_E_ARGUMENT, "%s: value is %.17g, which %s does not hold",
                                 call, value, tile_dtype_name(dtype));
    tile_emission e = {.op = &tile_shape_ops[FULL],
                       .has_shape = true,
                       .shape = shape,
                       .has_dtype = true,
                       .dtype = dtype};
    if (tile_is_float(dtype))
        e.attrs.real = value;
    else
        e.attrs.n[0] = dtype == TILE_U64 ? (int64_t)(uint64_t)value : (int64_t)value;
    return tile_emit(b, &e);
}

tile(tile_full)(tile_builder *b, tile_dtype dtype, tile_shape shape, double value) {
    return emit_full("tile_full", b, dtype, shape, value);
}

tile(tile_zeros)(tile_builder *b, tile_dtype dtype, tile_shape shape) {
    return emit_full("tile_zeros", b, dtype, shape, 0);
}

tile(tile_ones)(tile_builder *b, tile_dtype dtype, tile_shape shape) {
    return emit_full("tile_ones", b, dtype, shape, 1);
}

tile(tile_iota)(tile_builder *b, tile_dtype dtype, tile_shape shape, int axis, tile start) {
    if (axis < 0 || axis >= shape.rank)
        return tile_builder_fail(b, TILE_E_ARGUMENT, "tile_iota: axis is %d, the rank is %d", axis,
                                 shape.rank);
    tile_emission e = {.op = &tile_shape_ops[IOTA],
                       .n_in = 1,
                       .in = {start},
                       .attrs = {.n = {INT64_C(1) << axis}},
                       .has_shape = true,
                       .shape = shape};
    if (tile_is_good(start) && tile_dtype_of(start) != dtype) {
        if (tile_dtype_of(start) != TILE_I64)
            return tile_builder_fail(b, TILE_E_DTYPE,
                                     "tile_iota: start is %s, expected %s or int64",
                                     tile_dtype_name(tile_dtype_of(start)), tile_dtype_name(dtype));
        const tile_emission cast = {.op = tile_op_find("cast"),
                                    .n_in = 1,
                                    .in = {start},
                                    .has_dtype = true,
                                    .dtype = dtype};
        e.in[0] = tile_emit(b, &cast);
    }
    return tile_emit(b, &e);
}

static tile emit_shaped(int op, tile t, tile_shape shape) {
    const tile_emission e = {
        .op = &tile_shape_ops[op], .n_in = 1, .in = {t}, .has_shape = true, .shape = shape};
    return tile_emit(t.builder, &e);
}

tile(tile_broadcast)(tile t, tile_shape shape) {
    return emit_shaped(BROADCAST, t, shape);
}

tile(tile_reshape)(tile t, tile_shape shape) {
    return emit_shaped(RESHAPE, t, shape);
}

tile(tile_permute)(tile t, tile_shape order) {
    if (!tile_is_good(t)) return t;
    tile_emission e = {.op = &tile_shape_ops[PERMUTE], .n_in = 1, .in = {t}};
    const int rank = tile_shape_of_tile(t).rank;
    if (order.rank != rank)
        return tile_builder_fail(t.builder, TILE_E_ARGUMENT,
                                 "tile_permute: the order has %d dimensions, the tile has %d",
                                 order.rank, rank);
    for (int k = 0; k < rank; k++) e.attrs.n[k] = order.extent[k];
    return tile_emit(t.builder, &e);
}

tile(tile_transpose)(tile t) {
    if (!tile_is_good(t)) return t;
    tile_emission e = {.op = &tile_shape_ops[PERMUTE], .n_in = 1, .in = {t}};
    const int rank = tile_shape_of_tile(t).rank;
    if (rank < 2)
        return tile_builder_fail(t.builder, TILE_E_SHAPE,
                                 "tile_transpose: the rank is %d, expected 2 or more", rank);
    for (int k = 0; k < rank; k++) e.attrs.n[k] = k;
    e.attrs.n[rank - 2] = rank - 1;
    e.attrs.n[rank - 1] = rank - 2;
    return tile_emit(t.builder, &e);
}

tile(tile_view)(tile t, tile_offset offset, tile_shape shape) {
    const tile_emission e = {.op = &tile_shape_ops[VIEW],
                             .n_in = 1,
                             .in = {t},
                             .at = offset,
                             .has_shape = true,
                             .shape = shape};
    return tile_emit(t.builder, &e);
}

tile(tile_assign)(tile dst, tile src, tile_offset offset) {
    const tile_emission e = {
        .op = &tile_shape_ops[ASSIGN], .n_in = 2, .in = {dst, src}, .at = offset};
    return tile_emit(dst.builder, &e);
}

tile(tile_concat)(tile_list parts, int axis) {
    tile_builder *b = tile_builder_of(parts.item, parts.count);
    if (parts.count < 1) return (tile){b, -1};
    tile all = parts.item[0];
    const int rank = tile_is_good(all) ? tile_shape_of_tile(all).rank : 0;
    if (tile_is_good(all) && (axis < 0 || axis >= rank))
        return tile_builder_fail(b, TILE_E_ARGUMENT, "concat: axis is %d, the rank is %d", axis,
                                 rank);
    for (int k = 1; k < parts.count; k++) {
        const tile_emission e = {.op = &tile_shape_ops[CONCAT],
                                 .n_in = 2,
                                 .in = {all, parts.item[k]},
                                 .attrs = {.n = {axis}}};
        all = tile_emit(b, &e);
    }
    return all;
}
