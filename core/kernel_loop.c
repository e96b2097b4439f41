/* kernel_loop.c: the public calls of loops: what they check, and the states that they carry. */
#include "core/array.h"
#include "core/builder.h"
#include "core/memory.h"
#include "core/status.h"
#include "core/struct_tile.h"

/* How often a loop may run: known when a launch begins. */
static bool check_count(tile_builder *b, const char *call, const char *what, tile count) {
    if (!tile_is_good(count) || count.builder != b || count.id >= b->program.value_count) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: %s is not a tile of this kernel", call, what);
        return false;
    }
    if (tile_shape_of_tile(count).rank || tile_dtype_of(count) != TILE_I64) {
        tile_builder_fail(b, TILE_E_DTYPE, "%s: %s is %s of rank %d, expected int64 of rank 0",
                          call, what, tile_dtype_name(tile_dtype_of(count)),
                          tile_shape_of_tile(count).rank);
        return false;
    }
    if (tile_value_is_launch_known(&b->program, count.id)) return true;
    tile_builder_fail(b, TILE_E_ARGUMENT, "%s: %s is not made of constants and integer parameters",
                      call, what);
    return false;
}

static bool is_usable(const tile_builder *b, tile t) {
    tile part[TILE_MEMBERS_MAX];
    if (!tile_is_good(t) || t.builder != b) return false;
    for (int k = tile_parts(t, part) - 1; k >= 0; k--)
        if (part[k].id >= b->program.value_count ||
            !tile_region_within(&b->program, b->region, b->program.value[part[k].id].region))
            return false;
    return true;
}

static bool check_go(tile_builder *b, const char *call, tile go) {
    if (!is_usable(b, go)) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: go is not usable here", call);
        return false;
    }
    if (!tile_shape_of_tile(go).rank && tile_dtype_of(go) == TILE_BOOL) return true;
    tile_builder_fail(b, TILE_E_DTYPE, "%s: go is %s of rank %d, expected bool of rank 0", call,
                      tile_dtype_name(tile_dtype_of(go)), tile_shape_of_tile(go).rank);
    return false;
}

/* Whether every tile of a list may be used here. */
static bool check_list(tile_builder *b, const char *call, const tile_list *list) {
    if (list->count < 0 || list->count > TILE_CARRIED_MAX) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: %d tiles, expected 0 to %d", call, list->count,
                          TILE_CARRIED_MAX);
        return false;
    }
    for (int k = 0; k < list->count; k++) {
        if (is_usable(b, list->item[k])) continue;
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: tile %d is not usable here", call, k + 1);
        return false;
    }
    return true;
}

/* States */

static bool is_live(const tile_builder *b, int32_t state) {
    return b->state[state] >= 0;
}

/* What a loop carries: the user's tiles, then the live ones of the first states; of structs, their
 * members. NULL on an error. */
static tile *with_states(tile_builder *b, const tile_list *list, int32_t states, int *n) {
    const size_t most = ((size_t)list->count + (size_t)states + 1) * TILE_MEMBERS_MAX;
    tile *all = tile_alloc(most * sizeof *all);
    if (!all) {
        tile_builder_fail(b, TILE_E_MEMORY, "%s", tile_last_error());
        return NULL;
    }
    *n = 0;
    for (int k = 0; k < list->count; k++) *n += tile_parts(list->item[k], all + *n);
    for (int32_t k = 0; k < states; k++)
        if (is_live(b, k)) *n += tile_parts(tile_builder_state(b, k), all + *n);
    return all;
}

/* What a loop makes of a tile that it carries, whose first part is the n-th. */
static tile carried(tile_builder *b, int32_t loop, tile like, int *n, bool inside) {
    tile part[TILE_MEMBERS_MAX];
    const int count = tile_parts(like, part);
    for (int k = 0; k < count; k++, ++*n)
        part[k] = inside ? tile_builder_loop_argument(b, loop, 1 + *n)
                         : tile_builder_loop_result(b, loop, *n);
    if (!tile_is_struct(like)) return part[0];
    return tile_struct_of_parts(b, tile_dtype_of(like), tile_shape_of_tile(like), part);
}

/* The user's tiles and the live ones of the first states are now what a loop makes of them. */
static void take_carried(tile_loop *loop, const tile_list *list, bool inside) {
    tile_builder *b = loop->builder;
    int n = 0;
    if (b->status) return;
    for (int k = 0; k < list->count; k++)
        loop->carried[k] = carried(b, loop->node, list->item[k], &n, inside);
    for (int32_t k = 0; k < loop->states; k++)
        if (is_live(b, k))
            tile_builder_state_set(b, k,
                                   carried(b, loop->node, tile_builder_state(b, k), &n, inside));
}

/* Begin and end */

/* go: NULL for a counted loop. */
static void begin_loop(tile_loop *loop, tile count, const tile *go, const tile_list *initial) {
    tile_builder *b = loop->builder;
    int n;
    tile *all = with_states(b, initial, b->state_count, &n);
    if (!all) return;
    loop->node = go ? tile_builder_while_begin(b, *go, count, n, all)
                    : tile_builder_loop_begin(b, count, n, all, false);
    tile_free(all);
    loop->index = tile_builder_loop_argument(b, loop->node, 0);
    loop->states = b->state_count;
    take_carried(loop, initial, true);
}

static tile_loop no_loop(tile_builder *b, const tile_list *initial) {
    tile_loop loop = {.builder = b,
                      .node = -1,
                      .index = {b, -1},
                      .trips = {b, -1},
                      .carried_count = initial->count};
    for (int k = 0; k < TILE_CARRIED_MAX; k++) loop.carried[k] = (tile){b, -1};
    return loop;
}

tile_loop(tile_loop_begin)(tile_builder *b, tile count, tile_list initial) {
    tile_loop loop = no_loop(b, &initial);
    if (b && !b->status && check_count(b, "tile_loop_begin", "count", count) &&
        check_list(b, "tile_loop_begin", &initial))
        begin_loop(&loop, count, NULL, &initial);
    return loop;
}

tile_loop(tile_while_begin)(tile_builder *b, tile go, tile most, tile_list initial) {
    tile_loop loop = no_loop(b, &initial);
    if (b && !b->status && check_go(b, "tile_while_begin", go) &&
        check_count(b, "tile_while_begin", "most", most) &&
        check_list(b, "tile_while_begin", &initial))
        begin_loop(&loop, most, &go, &initial);
    return loop;
}

static bool check_next(tile_builder *b, const char *call, const tile_loop *loop,
                       const tile_list *next) {
    if (next->count != loop->carried_count) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: %d tiles, expected %d", call, next->count,
                          loop->carried_count);
        return false;
    }
    for (int k = 0; k < next->count; k++) {
        const tile got = next->item[k], want = loop->carried[k];
        const tile_dtype dtype[] = {tile_dtype_of(got), tile_dtype_of(want)};
        const tile_shape shape[] = {tile_shape_of_tile(got), tile_shape_of_tile(want)};
        char text[2][TILE_SHAPE_TEXT];
        if (dtype[0] == dtype[1] && tile_shape_equal(shape[0], shape[1])) continue;
        tile_builder_fail(b, TILE_E_SHAPE, "%s: tile %d is %s %s, expected %s %s", call, k + 1,
                          tile_dtype_name(dtype[0]), tile_shape_text(shape[0], text[0]),
                          tile_dtype_name(dtype[1]), tile_shape_text(shape[1], text[1]));
        return false;
    }
    return true;
}

/* Whether the loop is the one that goes on here, of the kind that the call ends. */
static bool check_loop(tile_builder *b, const char *call, const tile_loop *loop, bool is_while) {
    const tile_program *p = &b->program;
    if (loop->node < 0) {
        tile_builder_fail(b, TILE_E_STATE, "%s: the loop has ended already", call);
        return false;
    }
    if (b->region != p->node[loop->node].region) {
        tile_builder_fail(b, TILE_E_STATE, "%s: another loop inside has not ended", call);
        return false;
    }
    if (tile_loop_is_while(&p->node[loop->node]) == is_while) return true;
    tile_builder_fail(b, TILE_E_STATE, "%s: the loop began with %s", call,
                      is_while ? "tile_loop_begin" : "tile_while_begin");
    return false;
}

static void end_loop(tile_loop *loop, const tile *go, const tile_list *next) {
    tile_builder *b = loop->builder;
    int n;
    tile *all = with_states(b, next, loop->states, &n);
    if (!all) return;
    if (go)
        tile_builder_while_end(b, loop->node, *go, n, all);
    else
        tile_builder_loop_end(b, loop->node, n, all);
    tile_free(all);
    take_carried(loop, next, false);
    for (int32_t k = loop->states; k < b->state_count; k++) b->state[k] = -1;
    if (go) loop->trips = tile_builder_while_trips(b, loop->node);
    loop->node = -1;
}

void(tile_loop_end)(tile_loop *loop, tile_list next) {
    tile_builder *b = loop ? loop->builder : NULL;
    if (b && !b->status && check_loop(b, "tile_loop_end", loop, false) &&
        check_list(b, "tile_loop_end", &next) && check_next(b, "tile_loop_end", loop, &next))
        end_loop(loop, NULL, &next);
}

void(tile_while_end)(tile_loop *loop, tile go, tile_list next) {
    tile_builder *b = loop ? loop->builder : NULL;
    if (b && !b->status && check_loop(b, "tile_while_end", loop, true) &&
        check_go(b, "tile_while_end", go) && check_list(b, "tile_while_end", &next) &&
        check_next(b, "tile_while_end", loop, &next))
        end_loop(loop, &go, &next);
}
