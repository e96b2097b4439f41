/* cuda_writer.h: what the files that write CUDA C share. Not for others. */
#ifndef TILE_CORE_CUDA_WRITER_H
#define TILE_CORE_CUDA_WRITER_H

#include "core/cuda_source.h"
#include "core/exec_internal.h"

enum { TILE_CUDA_OPERAND = 80 };

typedef struct tile_cuda_writer {
    const tile_executable *exe;
    const tile_program *p;
    const tile_plan *plan;
    tile_text *out, *calls; /* the kernel's steps; what they call, before it */
    uint64_t families;
    /* Per value. A lone one is one element that every thread computes for itself, a variable; of
     * these only placed ones are also in the arena. */
    bool *lone, *placed;
    bool used; /* the arena was used since the last barrier */
    int depth;
} tile_cuda_writer;

/* The C type of an element. */
const char *tile_cuda_type(tile_dtype dtype);

/* The margin of a line. */
void tile_cuda_margin(const tile_cuda_writer *w);

/* A barrier, if the arena was used; what follows uses it. */
void tile_cuda_use_arena(tile_cuda_writer *w);

/* A value of one element, as an expression. */
void tile_cuda_single(const tile_cuda_writer *w, int32_t value, char to[TILE_CUDA_OPERAND]);

/* Puts a lone value into the arena, where it is placed. */
void tile_cuda_place_lone(tile_cuda_writer *w, int32_t value);

/* Steps of the plan (cuda_source.c); those of the structure's own ops (cuda_steps.c). */
void tile_cuda_write_steps(tile_cuda_writer *w, int32_t first, int32_t count);
void tile_cuda_write_scalar(tile_cuda_writer *w, const tile_step *step);
void tile_cuda_write_loop(tile_cuda_writer *w, int32_t at);
void tile_cuda_write_kept(tile_cuda_writer *w, const tile_step *step);
void tile_cuda_write_within(tile_cuda_writer *w, const tile_step *step);

#endif
