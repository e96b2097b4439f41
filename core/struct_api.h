/* struct_api.h: element types made of members, so that an array of a C struct is usable as it is.
 *
 * Loads, stores, atomic additions and copies act member by member; the gradient of such an array
 * has the same layout, and its float members hold something. Maths is done on members: tile_field
 * gives one as a tile, tile_with_field and tile_struct put them together again. */
#ifndef TILE_CORE_STRUCT_API_H
#define TILE_CORE_STRUCT_API_H

#include "core/types_api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TILE_MEMBERS_MAX = 16 /* members of a struct */ };

/* A member of a struct. */
typedef struct tile_member {
    const char *name;
    tile_dtype dtype; /* no struct */
    tile_shape shape; /* TILE_SCALAR, or the extents of an array inside the struct */
    size_t offset;    /* bytes from the start of the struct */
    size_t bytes;     /* sizeof the member */
} tile_member;

/* A member of a C struct, by its name there; an array inside it, with its extents. In C they may
 * initialise static arrays. */
#define TILE_MEMBER(type, name, dtype) \
    { #name, dtype, {0, {0 } }, offsetof(type, name), sizeof(((type *)0)->name) }
#ifdef __cplusplus
#define TILE_MEMBER_ARRAY(type, name, dtype, ...) \
    { #name, dtype, TILE_SHAPE(__VA_ARGS__), offsetof(type, name), sizeof(((type *)0)->name) }
#else
#define TILE_MEMBER_ARRAY(type, name, dtype, ...)                                         \
    {                                                                                     \
#name, dtype,                                                                     \
            {(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__ } }, \
             offsetof(type, name), sizeof(((type *)0)->name)                              \
    }
#endif

/* tile_dtype_struct: the element type of a struct. The same description gives the same type; types
 * stay known until the program ends.
 *
 *   typedef struct particle { float x[3]; int32_t id; } particle;
 *   const tile_member members[] = {TILE_MEMBER_ARRAY(particle, x, TILE_F32, 3),
 *                                  TILE_MEMBER(particle, id, TILE_I32)};
 *   tile_dtype_struct("particle", sizeof(particle), 2, members, &dtype);
 *
 * in       name an identifier, for messages; size bytes of the struct, padding included;
 *          1..TILE_MEMBERS_MAX members, in any order
 * special  bytes that belong to no member are never touched by kernels
 * errors   TILE_E_ARGUMENT names the member: outside of the struct, over another one, not at a
 *          multiple of its element's size, bytes that are not its shape's; size is no multiple of
 *          an element's; TILE_E_DTYPE a member of a struct type; TILE_E_MEMORY, also for more than
 *          1024 types
 */
TILE_API tile_status tile_dtype_struct(const char *name, size_t size, int count,
                                       const tile_member *members, tile_dtype *dtype) TILE_MUST_USE;

/* tile_array_field: a view of one member in every element of an array of structs. Its shape is the
 * array's, then the member's. Shares memory and gradient with the array.
 *
 * errors   TILE_E_DTYPE not an array of structs; TILE_E_ARGUMENT no member of that name;
 *          TILE_E_MEMORY
 */
TILE_API tile_status tile_array_field(tile_array *array, const char *name,
                                      tile_array **view) TILE_MUST_USE;

/* tile_field: one member of every element of a struct tile. Its shape is the tile's, then the
 * member's.
 *
 *   f[c, m] = t[c].name[m]
 *   dt[c].name[m] += df[c, m]
 *
 * errors   TILE_E_DTYPE t is no struct; TILE_E_ARGUMENT no member of that name
 */
TILE_API tile tile_field(tile t, const char *name);

/* tile_with_field: a struct tile with one member replaced.
 *
 * in       value: shape of t, then of the member, or what broadcasts to it; the member's dtype
 * errors   TILE_E_DTYPE, TILE_E_SHAPE, TILE_E_ARGUMENT no member of that name
 */
TILE_API tile tile_with_field(tile t, const char *name, tile value);

/* tile_struct: a struct tile of its members, in the order of tile_dtype_struct.
 *
 * in       shape of the tile; values: shape, then the member's, or what broadcasts to it
 * errors   TILE_E_DTYPE, TILE_E_SHAPE, TILE_E_ARGUMENT another number of tiles than members
 */
TILE_API tile tile_struct(tile_builder *b, tile_dtype dtype, tile_shape shape, tile_list values);

#ifdef __cplusplus
}
#endif

#define tile_field(...) (tile_here(__FILE__, __LINE__), tile_field(__VA_ARGS__))
#define tile_with_field(...) (tile_here(__FILE__, __LINE__), tile_with_field(__VA_ARGS__))
#define tile_struct(...) (tile_here(__FILE__, __LINE__), tile_struct(__VA_ARGS__))
#endif
