/* graph.c: what a replay does, as CUDA graphs.
 *
 * Between begin and end commands are taken down. A segment of them that is new is given to the
 * stream; when the same, byte for byte, comes again at its place, it is captured; from then on that
 * graph is launched. So nothing is assumed of what a replay does: a buffer or a scalar that is
 * another one is seen. Segments are bounded, and end where the host must wait. */
#include <string.h>

#include "core/memory.h"
#include "core/status.h"
#include "cuda/cuda_device.h"

enum { SEGMENT = 512 /* commands */, ALIGN = 16 };

typedef struct segment {
    tile_cuda_list list;
    tile_cu_handle exec; /* NULL: not captured */
} segment;

struct tile_device_graph {
    tile_cuda_list list; /* being taken down */
    segment *segment;
    int32_t count, capacity;
    int32_t at;       /* the next segment */
    int64_t unloaded; /* the device's, when the segments were taken down */
};

static void clear(tile_cuda_list *list) {
    tile_free(list->command);
    tile_free(list->argument);
    *list = (tile_cuda_list){.count = 0};
}

static tile_status add(tile_cuda_list *list, const tile_cuda_command *command,
                       const void *argument) {
    const size_t bytes = command->kind == TILE_CUDA_LAUNCH ? command->bytes : 0;
    const size_t room = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    TILE_TRY(tile_grow(&list->command, &list->capacity, list->count + 1, sizeof *list->command));
    TILE_TRY(tile_grow(&list->argument, &list->room, list->bytes + (int32_t)room, 1));
    tile_cuda_command *c = &list->command[list->count++];
    memcpy(c, command, sizeof *c); /* its padding too: lists are compared as bytes */
    if (command->kind == TILE_CUDA_LAUNCH) c->argument = (size_t)list->bytes;
    if (bytes) memcpy(list->argument + list->bytes, argument, bytes);
    list->bytes += (int32_t)room;
    return TILE_OK;
}

tile_status tile_cuda_take(tile_cuda_device *d, const tile_cuda_command *command,
                           const void *argument, bool *taken) {
    tile_device_graph *g = d->graph;
    *taken = g && !d->graphs_off;
    if (!*taken) return TILE_OK;
    if (g->list.count == SEGMENT) TILE_TRY(tile_cuda_flush(d));
    *taken = !d->graphs_off;
    return *taken ? add(&g->list, command, argument) : TILE_OK;
}

static bool is_same_command(const tile_cuda_command *a, const tile_cuda_command *b) {
    return a->kind == b->kind && a->function == b->function && a->blocks == b->blocks &&
           a->threads == b->threads && a->shared == b->shared && a->argument == b->argument &&
           a->bytes == b->bytes && a->to == b->to && a->from == b->from && a->size == b->size &&
           a->count == b->count && a->value == b->value;
}

static bool is_same(const tile_cuda_list *a, const tile_cuda_list *b) {
    if (a->count != b->count || a->bytes != b->bytes) return false;
    for (int32_t k = 0; k < a->count; k++)
        if (!is_same_command(&a->command[k], &b->command[k])) return false;
    return !memcmp(a->argument, b->argument, (size_t)a->bytes);
}

static int perform_all(const tile_cuda_device *d, const tile_cuda_list *list) {
    int result = 0;
    for (int32_t k = 0; k < list->count && !result; k++)
        result =
            tile_cuda_perform(d, &list->command[k], list->argument + list->command[k].argument);
    return result;
}

static void drop_exec(const tile_cuda_device *d, segment *s) {
    if (s->exec) (void)d->driver->graph_exec_destroy(s->exec);
    s->exec = NULL;
}

/* What the stream is given between begin and end is not done but becomes the graph. */
static int capture(const tile_cuda_device *d, segment *s) {
    tile_cu_handle graph = NULL;
    int result = d->driver->capture_begin(d->stream, TILE_CU_CAPTURE_RELAXED);
    if (result) return result;
    result = perform_all(d, &s->list);
    const int ended = d->driver->capture_end(d->stream, &graph);
    if (!result) result = ended;
    if (!result) result = d->driver->graph_instantiate(&s->exec, graph, 0);
    if (result) s->exec = NULL;
    if (graph) (void)d->driver->graph_destroy(graph);
    return result;
}

static tile_status run_directly(tile_cuda_device *d, const tile_cuda_list *list) {
    return tile_cuda_check(d, perform_all(d, list), "CUDA: a replay");
}

/* A driver that refuses a graph is asked for no more of them. */
static tile_status run_again(tile_cuda_device *d, segment *s) {
    if (!s->exec) {
        const int result = capture(d, s);
        if (result && !tile_driver_is_lost(result)) {
            d->graphs_off = true;
            return run_directly(d, &s->list);
        }
        TILE_TRY(tile_cuda_check(d, result, "CUDA: capturing a graph"));
        d->graphs_made++;
    }
    d->graphs_run++;
    return tile_cuda_check(d, d->driver->graph_launch(s->exec, d->stream),
                           "CUDA: launching a graph");
}

/* Without memory to remember it, a segment is only run. */
static segment *next_segment(tile_device_graph *g) {
    if (tile_grow(&g->segment, &g->capacity, g->at + 1, sizeof *g->segment)) return NULL;
    if (g->at == g->count) g->count++;
    return &g->segment[g->at++];
}

/* Segments may name functions that are gone, whose handles other functions have got. */
static void forget(const tile_cuda_device *d, tile_device_graph *g) {
    if (g->unloaded == d->unloaded) return;
    g->unloaded = d->unloaded;
    for (int32_t k = 0; k < g->count; k++) {
        drop_exec(d, &g->segment[k]);
        g->segment[k].list.count = g->segment[k].list.bytes = 0;
    }
}

tile_status tile_cuda_flush(tile_cuda_device *d) {
    tile_device_graph *g = d->graph;
    tile_status status;
    if (!g || !g->list.count) return TILE_OK;
    forget(d, g);
    segment *s = next_segment(g);
    if (s && is_same(&g->list, &s->list)) {
        status = run_again(d, s);
    } else {
        status = run_directly(d, &g->list);
        if (s) {
            const tile_cuda_list old = s->list;
            drop_exec(d, s);
            s->list = g->list;
            g->list = old;
        }
    }
    g->list.count = g->list.bytes = 0;
    return status;
}

tile_status tile_cuda_graph_begin(tile_device *device, tile_device_graph **graph) {
    tile_cuda_device *d = (tile_cuda_device *)(void *)device;
    if (!*graph) *graph = tile_alloc(sizeof **graph);
    if (!*graph) return TILE_E_MEMORY;
    (*graph)->at = 0;
    d->graph = *graph;
    return TILE_OK;
}

tile_status tile_cuda_graph_cut(tile_device *device) {
    tile_cuda_device *d = (tile_cuda_device *)(void *)device;
    if (!d->graph) return TILE_OK;
    TILE_TRY(tile_cuda_enter(d));
    const tile_status status = tile_cuda_flush(d);
    tile_cuda_leave(d);
    return status;
}

tile_status tile_cuda_graph_end(tile_device *device) {
    tile_cuda_device *d = (tile_cuda_device *)(void *)device;
    tile_device_graph *g = d->graph;
    const tile_status status = tile_cuda_graph_cut(device);
    g->list.count = g->list.bytes = 0;
    d->graph = NULL;
    return status;
}

void tile_cuda_graph_free(tile_device *device, tile_device_graph *graph) {
    tile_cuda_device *d = (tile_cuda_device *)(void *)device;
    if (!graph) return;
    const bool entered = !tile_cuda_enter(d);
    for (int32_t k = 0; k < graph->count; k++) {
        if (entered) drop_exec(d, &graph->segment[k]);
        clear(&graph->segment[k].list);
    }
    if (entered) tile_cuda_leave(d);
    clear(&graph->list);
    tile_free(graph->segment);
    tile_free(graph);
}
