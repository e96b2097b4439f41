/* struct_tile.h: struct tiles and parameters while a kernel is built.
 *
 * A program knows no structs: a parameter of structs is one parameter for each member, a struct
 * tile is one value for each member. The builder keeps which belong together. */
#ifndef TILE_CORE_STRUCT_TILE_H
#define TILE_CORE_STRUCT_TILE_H

#include "core/builder.h"
#include "core/struct_dtype.h"

/* Handles from these on stand for structs. */
enum { TILE_STRUCT_PARAM = 1 << 16, TILE_STRUCT_ID = 1 << 28 };

static inline bool tile_is_struct(tile t) {
    return t.builder && t.id >= TILE_STRUCT_ID;
}
static inline bool tile_param_is_struct(tile_param a) {
    return a.builder && a.index >= TILE_STRUCT_PARAM;
}

/* Of a struct tile of the builder; NULL: it is none. */
const tile_struct_value *tile_struct_value_of(tile t);

/* A struct tile of its members' values. */
tile tile_struct_of_parts(tile_builder *b, tile_dtype dtype, tile_shape shape, const tile *part);

/* A struct tile of zeros. */
tile tile_struct_zeros(tile_builder *b, tile_dtype dtype, tile_shape shape);

/* Parts of a tile: of a struct its members, else itself. Returns how many. */
int tile_parts(tile t, tile part[TILE_MEMBERS_MAX]);

/* A parameter of structs; its members' parameters are named name.member. */
tile_param tile_struct_param(tile_builder *b, const char *name, tile_dtype dtype, int rank);

/* Whether a struct tile or parameter takes part. */
static inline bool tile_takes_struct(const tile_emission *e) {
    bool some = tile_param_is_struct(e->array);
    for (int k = 0; k < e->n_in && k < TILE_OP_IN; k++) some |= tile_is_struct(e->in[k]);
    return some;
}

/* tile_emit where a struct takes part: the op on every member. */
tile tile_emit_struct(tile_builder *b, const tile_emission *emission);

#endif
