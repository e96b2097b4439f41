/* struct_array.c: views of the members of arrays of structs. */
#include "core/array.h"
#include "core/dtype.h"
#include "core/memory.h"
#include "core/status.h"
#include "core/struct_dtype.h"

/* A member lies at a multiple of its element's size, and so does every struct. */
tile_array tile_array_part(const tile_array *array, int k) {
    const tile_struct_info *info = tile_struct_of(array->dtype);
    if (!info) return *array;
    const tile_struct_member *m = &info->member[k];
    const int64_t element = (int64_t)tile_dtype_size(m->dtype);
    const int64_t step = (int64_t)info->size / element;
    tile_array part = {.storage = array->storage, .dtype = m->dtype, .shape = array->shape};
    for (int d = 0; d < part.shape.rank; d++) part.stride[d] = array->stride[d] * step;
    tile_shape_strides(m->shape, part.stride + part.shape.rank);
    for (int d = 0; d < m->shape.rank; d++)
        part.shape.extent[part.shape.rank + d] = m->shape.extent[d];
    part.shape.rank += m->shape.rank;
    part.offset = array->offset * step + (int64_t)m->offset / element;
    tile_array_measure(&part);
    return part;
}

int tile_array_part_count(const tile_array *array) {
    const tile_struct_info *info = tile_struct_of(array->dtype);
    return info ? info->count : 1;
}

static tile_status make_view(const tile_array *array, int k, tile_array **view) {
    const tile_array part = tile_array_part(array, k);
    return tile_array_over(part.storage, part.dtype, part.shape, part.stride, part.offset, view);
}

static tile_status need_views(tile_array *array, int count) {
    if (__atomic_load_n(&array->field, __ATOMIC_ACQUIRE)) return TILE_OK;
    tile_array **made = tile_alloc((size_t)count * sizeof *made), **none = NULL;
    if (!made) return TILE_E_MEMORY;
    if (!__atomic_compare_exchange_n(&array->field, &none, made, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        tile_free(made);
    return TILE_OK;
}

tile_status tile_array_member(tile_array *array, int k, tile_array **view) {
    const tile_struct_info *info = tile_struct_of(array->dtype);
    tile_array *made, *other = NULL;
    TILE_TRY(need_views(array, info->count));
    *view = __atomic_load_n(&array->field[k], __ATOMIC_ACQUIRE);
    if (*view) return TILE_OK;
    TILE_TRY(make_view(array, k, &made));
    const bool first = __atomic_compare_exchange_n(&array->field[k], &other, made, false,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (!first) tile_array_destroy(made);
    *view = first ? made : other;
    return TILE_OK;
}

tile_status tile_array_field(tile_array *array, const char *name, tile_array **view) {
    TILE_CHECK(array && name && view, TILE_E_ARGUMENT, "tile_array_field: %s is NULL",
               !array  ? "array"
               : !name ? "name"
                       : "view");
    const tile_struct_info *info = tile_struct_of(array->dtype);
    TILE_CHECK(info, TILE_E_DTYPE, "tile_array_field: array is %s, wanted a struct",
               tile_dtype_name(array->dtype));
    const int k = tile_struct_find(info, name);
    TILE_CHECK(k >= 0, TILE_E_ARGUMENT, "tile_array_field: %s has no member %s", info->name, name);
    return make_view(array, k, view);
}
