/* stack_ops.h: a stack that the lanes of a block share; included by tiletape.h. */
#ifndef TILE_OPS_STACK_OPS_H
#define TILE_OPS_STACK_OPS_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stack of a kernel that is being built. Copy it freely; each block of a launch has its own,
 * empty where tile_stack_create stands. A loop carries the stacks that were made before it. A lane
 * is an element, in row-major order, of the tile that is pushed or popped. */
typedef struct tile_stack {
    tile_builder *builder;
    int32_t state; /* the first of its states */
} tile_stack;

/* tile_stack_create: an empty stack.
 *
 *   count = 0, overflow = 0
 *
 * in       capacity 1 to 2^24 elements
 * errors   TILE_E_ARGUMENT, TILE_E_DTYPE
 */
TILE_API tile_stack tile_stack_create(tile_builder *b, int64_t capacity, tile_dtype dtype);

/* tile_stack_push: put the values of the lanes in mask onto the stack, in lane order.
 *
 *   n[c] = count + number of lanes in mask before c
 *   slot[c] = n[c] where mask[c] and n[c] < capacity, else -1
 *   stack[slot[c]] = value[c]
 *   count' = min(count + lanes in mask, capacity); what is left over is added to overflow
 *   dvalue[c] += the gradient of the pop that took it, 0 for -1
 *
 * in       value of the stack's dtype; mask bool, of value's shape or rank 0: for all lanes;
 *          gives slot tile int64 of value's shape
 * special  what finds no room is dropped
 * errors   TILE_E_DTYPE, TILE_E_SHAPE; TILE_E_STATE the stack was made in a loop that has ended
 */
TILE_API tile tile_stack_push(tile_stack stack, tile value, tile mask);

/* tile_stack_pop: take an element for each lane: the top one for the first lane.
 *
 *   n[c] = count - 1 - row-major number of c
 *   slot[c] = n[c] where n[c] >= 0, else -1
 *   value[c] = stack[slot[c]], 0 for -1
 *   count' = max(count - lanes, 0)
 *
 * in       shape of value; slot NULL, or where to put the tile of slots, int64 of that shape;
 *          gives value tile of the stack's dtype
 * errors   TILE_E_SHAPE; TILE_E_STATE the stack was made in a loop that has ended
 */
TILE_API tile tile_stack_pop(tile_stack stack, tile_shape shape, tile *slot);

/* tile_stack_pop_masked: tile_stack_pop for the lanes in mask alone.
 *
 *   n[c] = count - 1 - number of lanes in mask before c
 *   slot[c] = n[c] where mask[c] and n[c] >= 0, else -1
 *
 * in       mask bool, its shape is that of value
 * errors   TILE_E_DTYPE; TILE_E_STATE the stack was made in a loop that has ended
 */
TILE_API tile tile_stack_pop_masked(tile_stack stack, tile mask, tile *slot);

/* tile_stack_clear: forget all elements; overflow stays.
 *
 *   count' = 0
 *
 * errors   TILE_E_STATE the stack was made in a loop that has ended
 */
TILE_API void tile_stack_clear(tile_stack stack);

/* tile_stack_count, tile_stack_overflow: how many elements there are; how many were dropped since
 * the stack was made. Rank-0 int64.
 *
 * errors   TILE_E_STATE the stack was made in a loop that has ended
 */
TILE_API tile tile_stack_count(tile_stack stack);
TILE_API tile tile_stack_overflow(tile_stack stack);

#ifdef __cplusplus
}
#endif

#define tile_stack_create(...) (tile_here(__FILE__, __LINE__), tile_stack_create(__VA_ARGS__))
#define tile_stack_push(...) (tile_here(__FILE__, __LINE__), tile_stack_push(__VA_ARGS__))
#define tile_stack_pop(...) (tile_here(__FILE__, __LINE__), tile_stack_pop(__VA_ARGS__))
#define tile_stack_pop_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_stack_pop_masked(__VA_ARGS__))
#define tile_stack_clear(...) (tile_here(__FILE__, __LINE__), tile_stack_clear(__VA_ARGS__))
#define tile_stack_count(...) (tile_here(__FILE__, __LINE__), tile_stack_count(__VA_ARGS__))
#define tile_stack_overflow(...) (tile_here(__FILE__, __LINE__), tile_stack_overflow(__VA_ARGS__))
#endif
