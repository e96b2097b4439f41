/* struct_dtype.c: the struct element types of the process. */
#include "core/struct_dtype.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/dtype.h"
#include "core/status.h"

enum { STRUCTS_MAX = 1024 };

/* Slots are filled once, in order; readers need no lock. They outlive every context, so they are
 * no part of any. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const tile_struct_info *slot[STRUCTS_MAX];

const tile_struct_info *tile_struct_of(tile_dtype dtype) {
    const int64_t k = (int64_t)dtype - (int64_t)TILE_STRUCTS;
    if (k < 0 || k >= STRUCTS_MAX) return NULL;
    return __atomic_load_n(&slot[k], __ATOMIC_ACQUIRE);
}

int tile_struct_find(const tile_struct_info *info, const char *name) {
    for (int k = 0; name && k < info->count; k++)
        if (!strcmp(info->member[k].name, name)) return k;
    return -1;
}

bool tile_has_gradient(tile_dtype dtype) {
    const tile_struct_info *info = tile_struct_of(dtype);
    if (!info) return tile_is_float(dtype);
    for (int k = 0; k < info->count; k++)
        if (tile_is_float(info->member[k].dtype)) return true;
    return false;
}

bool tile_holds_half(tile_dtype dtype) {
    const tile_struct_info *info = tile_struct_of(dtype);
    if (!info) return tile_is_half(dtype);
    for (int k = 0; k < info->count; k++)
        if (tile_is_half(info->member[k].dtype)) return true;
    return false;
}

bool tile_is_name(const char *name) {
    const size_t n = name ? strlen(name) : 0;
    if (!n || n >= TILE_NAME_BYTES) return false;
    for (size_t k = 0; k < n; k++) {
        const char c = name[k];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (!k || c < '0' || c > '9')) return false;
    }
    return true;
}

static tile_status check_member(const char *type, size_t size, const tile_member *m) {
    TILE_CHECK(tile_is_name(m->name), TILE_E_ARGUMENT,
               "tile_dtype_struct: %s: a member's name is %s, wanted an identifier of 1 to %d "
               "letters",
               type, m->name ? m->name : "NULL", TILE_NAME_BYTES - 1);
    TILE_CHECK(tile_dtype_valid(m->dtype), TILE_E_DTYPE,
               "tile_dtype_struct: %s: member %s has dtype %d, wanted a type that is no struct",
               type, m->name, (int)m->dtype);
    const int64_t count = tile_shape_count(m->shape);
    char text[TILE_SHAPE_TEXT];
    const size_t element = tile_dtype_size(m->dtype);
    TILE_CHECK(count >= 1 && m->bytes / element == (size_t)count && m->bytes % element == 0,
               TILE_E_ARGUMENT, "tile_dtype_struct: %s: member %s is %s %s, its size is %zu bytes",
               type, m->name, tile_dtype_name(m->dtype), tile_shape_text(m->shape, text), m->bytes);
    TILE_CHECK(m->offset <= size && m->bytes <= size - m->offset, TILE_E_ARGUMENT,
               "tile_dtype_struct: %s: member %s ends behind the %zu bytes of the struct", type,
               m->name, size);
    TILE_CHECK(m->offset % element == 0 && size % element == 0, TILE_E_ARGUMENT,
               "tile_dtype_struct: %s: member %s at byte %zu of %zu is not at a multiple of the "
               "%zu bytes of its element",
               type, m->name, m->offset, size, element);
    return TILE_OK;
}

static tile_status check(const char *name, size_t size, int count, const tile_member *members,
                         const tile_dtype *dtype) {
    TILE_CHECK(tile_is_name(name), TILE_E_ARGUMENT,
               "tile_dtype_struct: name is %s, wanted an identifier of 1 to %d letters",
               name ? name : "NULL", TILE_NAME_BYTES - 1);
    TILE_CHECK(members && dtype, TILE_E_ARGUMENT, "tile_dtype_struct: %s: %s is NULL", name,
               members ? "dtype" : "members");
    TILE_CHECK(count >= 1 && count <= TILE_MEMBERS_MAX, TILE_E_ARGUMENT,
               "tile_dtype_struct: %s: %d members, wanted 1 to %d", name, count, TILE_MEMBERS_MAX);
    TILE_CHECK(size >= 1 && size <= INT32_MAX, TILE_E_ARGUMENT,
               "tile_dtype_struct: %s: size is %zu bytes", name, size);
    for (int k = 0; k < count; k++) {
        const tile_member *m = &members[k];
        TILE_TRY(check_member(name, size, m));
        for (int j = 0; j < k; j++) {
            const tile_member *n = &members[j];
            TILE_CHECK(strcmp(m->name, n->name) != 0, TILE_E_ARGUMENT,
                       "tile_dtype_struct: %s: two members are called %s", name, m->name);
            TILE_CHECK(m->offset >= n->offset + n->bytes || n->offset >= m->offset + m->bytes,
                       TILE_E_ARGUMENT, "tile_dtype_struct: %s: members %s and %s share bytes",
                       name, n->name, m->name);
        }
    }
    return TILE_OK;
}

/* All of it is set, so that descriptions compare as memory. */
static void describe(const char *name, size_t size, int count, const tile_member *members,
                     tile_struct_info *info) {
    memset(info, 0, sizeof *info);
    (void)snprintf(info->name, sizeof info->name, "%s", name);
    info->size = size;
    info->align = 1;
    info->count = count;
    for (int k = 0; k < count; k++) {
        tile_struct_member *to = &info->member[k];
        const size_t align = tile_dtype_align(members[k].dtype);
        (void)snprintf(to->name, sizeof to->name, "%s", members[k].name);
        to->dtype = members[k].dtype;
        to->shape.rank = members[k].shape.rank;
        for (int d = 0; d < to->shape.rank; d++) to->shape.extent[d] = members[k].shape.extent[d];
        to->offset = members[k].offset;
        to->bytes = members[k].bytes;
        if (align > info->align) info->align = align;
    }
}

static tile_status find_slot(const tile_struct_info *info, int *found) {
    for (int k = 0; k < STRUCTS_MAX; k++) {
        *found = k;
        if (slot[k] && !memcmp(slot[k], info, sizeof *info)) return TILE_OK;
        if (slot[k]) continue;
        tile_struct_info *copy = malloc(sizeof *copy);
        if (!copy) return tile_fail(TILE_E_MEMORY, "tile_dtype_struct: memory ran out");
        memcpy(copy, info, sizeof *copy);
        __atomic_store_n(&slot[k], copy, __ATOMIC_RELEASE);
        return TILE_OK;
    }
    return tile_fail(TILE_E_MEMORY, "tile_dtype_struct: %s is one more than the limit of %d types",
                     info->name, STRUCTS_MAX);
}

tile_status tile_dtype_struct(const char *name, size_t size, int count, const tile_member *members,
                              tile_dtype *dtype) {
    tile_struct_info info;
    int found = 0;
    TILE_TRY(check(name, size, count, members, dtype));
    describe(name, size, count, members, &info);
    pthread_mutex_lock(&lock);
    const tile_status status = find_slot(&info, &found);
    pthread_mutex_unlock(&lock);
    if (!status) *dtype = (tile_dtype)(TILE_STRUCTS + found);
    return status;
}
