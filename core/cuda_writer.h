/* cuda_writer.h: what the files that write CUDA C share. Not for others. */
#ifndef TILE_CORE_CUDA_WRITER_H
#define TILE_CORE_CUDA_WRITER_H

#include "core/cuda_order.h"

enum { TILE_CUDA_OPERAND = 160, TILE_CUDA_TOUCHES = 96 };

/* What threads did since the last barrier, or are about to do. */
typedef struct tile_cuda_touches {
    tile_cuda_effect memory;
    int count;
    struct {
        size_t begin, end; /* in the arena */
        bool write;
    } part[TILE_CUDA_TOUCHES];
    bool all; /* more than fit */
} tile_cuda_touches;

typedef struct tile_cuda_writer {
    const tile_program *p;
    const tile_plan *plan;
    const tile_cuda_order *order;
    tile_text *out, *calls; /* the kernel's steps; what they call, before it */
    uint64_t families;
    tile_cuda_touches before, now;
    int64_t work; /* the most threads that some step has work for */
    int depth;
} tile_cuda_writer;

/* The C type of an element. */
const char *tile_cuda_type(tile_dtype dtype);

/* A line at its margin. */
#define TILE_CUDA_LINE(w, ...) (tile_cuda_margin(w), tile_text_add((w)->out, __VA_ARGS__))
void tile_cuda_margin(const tile_cuda_writer *w);

/* Barriers (cuda_touch.c): a step says what it touches, then begins; a barrier comes before it when
 * what was touched since the last one meets that. */
void tile_cuda_reads(tile_cuda_writer *w, int32_t value);
void tile_cuda_writes(tile_cuda_writer *w, int32_t value);
void tile_cuda_touch(tile_cuda_writer *w, size_t place, size_t bytes, bool write);
void tile_cuda_does(tile_cuda_writer *w, const tile_cuda_effect *effect);
void tile_cuda_begin(tile_cuda_writer *w);
/* A barrier, where anything was touched since the last one. */
void tile_cuda_fence(tile_cuda_writer *w);

size_t tile_cuda_bytes(const tile_cuda_writer *w, int32_t value);

/* The value that a value is read from. */
static inline int32_t tile_cuda_base(const tile_cuda_writer *w, int32_t value) {
    return w->order->view[value].base;
}

/* A value of one element, as an expression; that it is read, if it is in the arena. */
void tile_cuda_single(const tile_cuda_writer *w, int32_t value, char to[TILE_CUDA_OPERAND]);
void tile_cuda_needs(tile_cuda_writer *w, int32_t value);

/* Element index of what a value is read from, in the arena. */
void tile_cuda_arena_at(const tile_cuda_writer *w, int32_t value, const char *index,
                        char to[TILE_CUDA_OPERAND]);

/* Notes that a lone value is put into the arena, if it is; puts it there. */
void tile_cuda_will_place(tile_cuda_writer *w, int32_t value);
void tile_cuda_place_lone(tile_cuda_writer *w, int32_t value);

void tile_cuda_integer(int64_t x, char to[TILE_CUDA_OPERAND]);
tile_dtype tile_cuda_key(const tile_cuda_writer *w, const tile_node *n);
void tile_cuda_note_family(tile_cuda_writer *w, const tile_op *op);
/* "tile_attrs q12 = ...", of a node. */
void tile_cuda_write_attrs(const tile_cuda_writer *w, const tile_node *node);

/* Steps of the plan (cuda_source.c); those of the structure's own ops (cuda_steps.c). */
void tile_cuda_write_steps(tile_cuda_writer *w, int32_t first, int32_t count);
void tile_cuda_write_scalar(tile_cuda_writer *w, const tile_step *step);
void tile_cuda_write_loop(tile_cuda_writer *w, int32_t at);
void tile_cuda_write_kept(tile_cuda_writer *w, const tile_step *step);
void tile_cuda_write_within(tile_cuda_writer *w, const tile_step *step);

/* What goes by elements (cuda_element.c): one for all threads, a group (cuda_group.c). */
void tile_cuda_write_lone(tile_cuda_writer *w, const tile_node *node);
void tile_cuda_write_group(tile_cuda_writer *w, const tile_step *step);

/* Where a window lies: "tile_span s12 = ..." and what belongs to it. */
void tile_cuda_write_span(tile_cuda_writer *w, const tile_node *node);

/* An op on elements: "const float v12 = add_f32(v9, v11); // y = a + b". */
void tile_cuda_write_call_of(tile_cuda_writer *w, const tile_node *node,
                             char operand[][TILE_CUDA_OPERAND]);

#endif
