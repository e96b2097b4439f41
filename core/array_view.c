/* array_view.c: views of arrays, and what can be said of the places that an array covers. */
#include "core/array.h"
#include "core/dtype.h"
#include "core/status.h"

/* Checks one dimension of a slice of a base that is not empty there. */
static tile_status check_slice(const tile_array *base, int d, int64_t start, int64_t extent,
                               int64_t step) {
    const int64_t room = base->shape.extent[d];
    TILE_CHECK(step >= 1, TILE_E_ARGUMENT,
               "tile_array_slice: step of dimension %d is %lld, wanted 1 or more", d,
               (long long)step);
    const bool inside = extent == 0
                            ? start >= 0 && start <= room
                            : start >= 0 && start < room && extent - 1 <= (room - 1 - start) / step;
    TILE_CHECK(inside, TILE_E_SHAPE,
               "tile_array_slice: dimension %d takes %lld from %lld by %lld, the base has %lld", d,
               (long long)extent, (long long)start, (long long)step, (long long)room);
    return TILE_OK;
}

tile_status tile_array_slice(tile_array *base, const int64_t *start, tile_shape shape,
                             const int64_t *step, tile_array **view) {
    TILE_CHECK(base && view, TILE_E_ARGUMENT, "tile_array_slice: %s is NULL",
               base ? "view" : "base");
    const int64_t count = tile_shape_count(shape);
    char text[TILE_SHAPE_TEXT];
    TILE_CHECK(count >= 0, TILE_E_ARGUMENT, "tile_array_slice: shape is malformed: rank %d, %s",
               shape.rank, tile_shape_text(shape, text));
    TILE_CHECK(shape.rank == base->shape.rank, TILE_E_SHAPE,
               "tile_array_slice: shape is of rank %d, base of rank %d", shape.rank,
               base->shape.rank);
    TILE_CHECK(start || shape.rank == 0, TILE_E_ARGUMENT, "tile_array_slice: start is NULL");
    int64_t stride[TILE_RANK_MAX] = {0}, offset = base->offset;
    for (int d = 0; d < shape.rank; d++) {
        const int64_t by = step ? step[d] : 1;
        TILE_TRY(check_slice(base, d, start[d], shape.extent[d], by));
        if (count == 0) continue;
        stride[d] = shape.extent[d] > 1 ? base->stride[d] * by : base->stride[d];
        offset += start[d] * base->stride[d];
    }
    return tile_array_over(base->storage, base->dtype, shape, count ? stride : NULL, offset, view);
}

tile_status tile_array_strided(tile_array *base, int64_t offset, tile_shape shape,
                               const int64_t *strides, tile_array **view) {
    TILE_CHECK(base && view, TILE_E_ARGUMENT, "tile_array_strided: %s is NULL",
               base ? "view" : "base");
    int64_t place;
    TILE_CHECK(strides || shape.rank == 0, TILE_E_ARGUMENT, "tile_array_strided: strides is NULL");
    TILE_TRY(tile_array_check_ranks("tile_array_strided", base->dtype, shape));
    TILE_CHECK(!__builtin_add_overflow(base->offset, offset, &place), TILE_E_SHAPE,
               "tile_array_strided: offset %lld is outside the storage", (long long)offset);
    return tile_array_over(base->storage, base->dtype, shape, strides, place, view);
}

static tile_range find_range(const tile_array *array) {
    const int64_t size = (int64_t)tile_dtype_size(array->dtype);
    const int64_t last = tile_shape_last(array->shape, array->stride);
    const tile_range range = {array->offset * size, (array->offset + last + 1) * size};
    return range;
}

bool tile_array_is_contiguous(const tile_array *array) {
    int64_t c_order[TILE_RANK_MAX];
    tile_shape_strides(array->shape, c_order);
    for (int d = 0; d < array->shape.rank; d++)
        if (array->shape.extent[d] > 1 && array->stride[d] != c_order[d]) return false;
    return true;
}

tile_status tile_array_row(tile_array *array, tile_array **row) {
    *row = array;
    if (array->shape.rank == 1) return TILE_OK;
    *row = __atomic_load_n(&array->row, __ATOMIC_ACQUIRE);
    if (*row) return TILE_OK;
    const tile_shape shape = {.rank = 1, .extent = {tile_array_count(array)}};
    tile_array *made, *other = NULL;
    TILE_TRY(tile_array_over(array->storage, array->dtype, shape, NULL, array->offset, &made));
    const bool first = __atomic_compare_exchange_n(&array->row, &other, made, false,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (!first) tile_array_destroy(made);
    *row = first ? made : other;
    return TILE_OK;
}

bool tile_array_is_whole(const tile_array *array) {
    const size_t size = tile_dtype_size(array->dtype);
    const size_t bytes = (size_t)tile_array_count(array) * size;
    return array->offset == 0 && bytes == array->storage->bytes && tile_array_is_contiguous(array);
}

/* No overlap when each stride, from the smallest up, steps over all that the smaller ones reach. */
static bool is_folded(const tile_array *array) {
    int order[TILE_RANK_MAX], n = 0;
    if (array->count == 0) return false;
    for (int d = 0; d < array->shape.rank; d++) {
        if (array->shape.extent[d] == 1) continue;
        int at = n++;
        for (; at > 0 && array->stride[order[at - 1]] > array->stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    int64_t reach = 0;
    for (int i = 0; i < n; i++) {
        const int64_t stride = array->stride[order[i]];
        if (stride <= reach) return true;
        reach += (array->shape.extent[order[i]] - 1) * stride;
    }
    return false;
}

void tile_array_measure(tile_array *array) {
    array->count = tile_shape_count(array->shape);
    array->range = find_range(array);
    array->folded = is_folded(array);
}
