/* memory_rules.h: what the families that read and write arrays share. Not for others. */
#ifndef TILE_OPS_MEMORY_RULES_H
#define TILE_OPS_MEMORY_RULES_H

#include "core/builder.h"

/* Whether part can be a window of the array (a tile of its rank, or one element), and the indices,
 * input 0 of an indexed op, go with it. */
tile_status tile_check_access(const tile_infer *in, tile_shape part) TILE_MUST_USE;

/* The rule of ops that write a tile, input 0 or, behind the indices, 1: its dtype is the array's,
 * previous values have its type. */
tile_status tile_infer_write(tile_infer *in) TILE_MUST_USE;

/* An op on the gradient's window at the forward op's place, by the same indices. in: its other n
 * inputs; shape: of what it reads. */
tile tile_emit_on_grad(tile_adjoint *adjoint, const tile_op *op, int n, const tile *in,
                       tile_shape shape);

/* Puts pad into the constants of a load; false: the dtype does not hold it. */
bool tile_set_pad(const char *call, tile_param a, double pad, tile_attrs *attrs);

#endif
