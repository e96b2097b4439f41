/* sweep.h: one reverse sweep: planned first, so that nothing but a device can fail half-way. */
#ifndef TILE_TAPE_SWEEP_H
#define TILE_TAPE_SWEEP_H

#include "tape/tape.h"

/* Chooses each record's kernels and says which adjoints are filled, dropped, skipped. Changes
 * nothing that lasts. */
tile_status tape_plan_sweep(tape *t, int count, tile_array *const *array) TILE_MUST_USE;

/* What a step of a record runs on. */
void tape_bind_step(const tape_record *r, const tile_adjoint_step *step, tile_bound *bound);

#endif
