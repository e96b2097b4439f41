/* struct_dtype.h: what is known of struct element types. */
#ifndef TILE_CORE_STRUCT_DTYPE_H
#define TILE_CORE_STRUCT_DTYPE_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TILE_NAME_BYTES = 48 };

typedef struct tile_struct_member {
    char name[TILE_NAME_BYTES];
    tile_dtype dtype;
    tile_shape shape;
    size_t offset, bytes;
} tile_struct_member;

typedef struct tile_struct_info {
    char name[TILE_NAME_BYTES];
    size_t size, align;
    int count;
    tile_struct_member member[TILE_MEMBERS_MAX];
} tile_struct_info;

/* What a struct type is; NULL for any other dtype. Never changes, is never freed. */
const tile_struct_info *tile_struct_of(tile_dtype dtype);

/* The index of a member, or -1. */
int tile_struct_find(const tile_struct_info *info, const char *name);

/* 1 to 47 letters, digits and underscores, no digit first. */
bool tile_is_name(const char *name);

#ifdef __cplusplus
}
#endif

#endif
