/* cuda_touch.c: where threads of a block must wait for each other. */
#include "core/cuda_writer.h"

size_t tile_cuda_bytes(const tile_cuda_writer *w, int32_t value) {
    const tile_value *v = &w->p->value[value];
    return (size_t)tile_cuda_count(v->shape) * tile_dtype_size(v->dtype);
}

void tile_cuda_touch(tile_cuda_writer *w, size_t place, size_t bytes, bool write) {
    tile_cuda_touches *t = &w->now;
    for (int k = 0; k < t->count; k++)
        if (t->part[k].begin == place && t->part[k].end == place + bytes &&
            t->part[k].write == write)
            return;
    if (t->count == TILE_CUDA_TOUCHES) {
        t->all = true;
        return;
    }
    t->part[t->count].begin = place;
    t->part[t->count].end = place + bytes;
    t->part[t->count++].write = write;
}

void tile_cuda_reads(tile_cuda_writer *w, int32_t value) {
    const int32_t base = tile_cuda_base(w, value);
    tile_cuda_touch(w, w->plan->place[base], tile_cuda_bytes(w, base), false);
}

void tile_cuda_writes(tile_cuda_writer *w, int32_t value) {
    tile_cuda_touch(w, w->plan->place[value], tile_cuda_bytes(w, value), true);
}

void tile_cuda_does(tile_cuda_writer *w, const tile_cuda_effect *effect) {
    w->now.memory.reads |= effect->reads;
    w->now.memory.writes |= effect->writes;
    w->now.memory.adds |= effect->adds;
}

static bool parts_meet(const tile_cuda_touches *x, const tile_cuda_touches *y) {
    if ((x->all && (y->count || y->all)) || (y->all && x->count)) return true;
    for (int k = 0; k < x->count; k++)
        for (int j = 0; j < y->count; j++)
            if ((x->part[k].write || y->part[j].write) && x->part[k].begin < y->part[j].end &&
                y->part[j].begin < x->part[k].end)
                return true;
    return false;
}

static void put_barrier(tile_cuda_writer *w) {
    TILE_CUDA_LINE(w, "__syncthreads();\n");
    w->before = (tile_cuda_touches){.count = 0};
}

void tile_cuda_begin(tile_cuda_writer *w) {
    tile_cuda_touches *b = &w->before, *n = &w->now;
    if (parts_meet(b, n) || tile_cuda_meet(w->order, &b->memory, &n->memory)) put_barrier(w);
    for (int k = 0; k < n->count && !b->all; k++) {
        b->all = b->count == TILE_CUDA_TOUCHES;
        if (!b->all) b->part[b->count++] = n->part[k];
    }
    b->all = b->all || n->all;
    b->memory.reads |= n->memory.reads;
    b->memory.writes |= n->memory.writes;
    b->memory.adds |= n->memory.adds;
    *n = (tile_cuda_touches){.count = 0};
}

void tile_cuda_fence(tile_cuda_writer *w) {
    const tile_cuda_touches *b = &w->before;
    if (b->count || b->all || b->memory.reads || b->memory.writes || b->memory.adds) put_barrier(w);
}
