/* exec_fuse.h: strips of two or more simple float ops in one pass, for the row plan.
 *
 * Each has the bits of the ops one after the other. Operands come in the order in which they are
 * used: first op, then second. */
#ifndef TILE_CORE_EXEC_FUSE_H
#define TILE_CORE_EXEC_FUSE_H

#include "core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TILE_SUM_MAX = 8 };

typedef enum tile_fused_op {
    TILE_FUSED_ADD,
    TILE_FUSED_SUB,
    TILE_FUSED_MUL,
    TILE_FUSED_GUARDED, /* a * b, 0 where a is 0 */
    TILE_FUSED_NEG,
    TILE_FUSED_FIRST, /* the ops above can come first; those below have the first's result on the
                         right */
    TILE_FUSED_FROM = TILE_FUSED_FIRST, /* b - a */
    TILE_FUSED_GUARDED_BY,              /* b * a, 0 where b is 0 */
    TILE_FUSED_SECOND
} tile_fused_op;

/* Indexed by float64 or not. */
typedef struct tile_fused {
    tile_strip pair[2][TILE_FUSED_FIRST][TILE_FUSED_SECOND];
    tile_strip sum[2][TILE_SUM_MAX + 1]; /* of 3 and more */
} tile_fused;

extern const tile_fused tile_fused_base; /* runs on any CPU */
#ifdef __x86_64__
extern const tile_fused tile_fused_avx2; /* needs AVX2 */
#endif

#ifdef __cplusplus
}
#endif

#endif
