/* adjoint.h: what an op's adjoint rule is given. A rule emits ops and returns contributions; the
 * builder of the adjoint program adds them up and drops what nobody needs.
 *
 * Operands and results are those of the forward op, recomputed or kept in the adjoint program: a
 * rule that does not ask for one costs nothing for it. Adjoints of 16-bit floats are float32, and
 * so are 16-bit operands as a rule sees them. */
#ifndef TILE_CORE_ADJOINT_H
#define TILE_CORE_ADJOINT_H

#include "core/builder.h"

/* The builder of the adjoint program. */
tile_builder *tile_adjoint_builder(tile_adjoint *adjoint);

/* The forward node's constants; shape and dtype of the adjoint of tile input k. */
const tile_attrs *tile_adjoint_attrs(const tile_adjoint *adjoint);
tile_shape tile_adjoint_in_shape(const tile_adjoint *adjoint, int k);
tile_dtype tile_adjoint_in_dtype(const tile_adjoint *adjoint, int k);

/* Tile input k, result k, as values of the adjoint program; 16-bit floats as float32. */
tile tile_adjoint_in(tile_adjoint *adjoint, int k);
tile tile_adjoint_out(tile_adjoint *adjoint, int k);

/* Adjoint of result k. Rules run only when some result has one; tile_is_good is false when this one
 * has none. */
tile tile_adjoint_dy(tile_adjoint *adjoint, int k);

/* Whether a gradient is wanted for tile input k. */
bool tile_adjoint_wants(const tile_adjoint *adjoint, int k);

/* Adds a contribution to the adjoint of tile input k, of its shape and dtype. */
void tile_adjoint_add(tile_adjoint *adjoint, int k, tile contribution);

/* Ops with an access: the gradient of the array, as a parameter of the adjoint program (it is read
 * and written), and the window's offset with its shift, as values of the adjoint program. Rules of
 * these ops run when the array is active or the result has an adjoint. */
tile_param tile_adjoint_grad(tile_adjoint *adjoint);
tile_offset tile_adjoint_offset(tile_adjoint *adjoint);

/* The window's bounds, low and high per dimension (2 * TILE_RANK_MAX places); false: it has none.
 * */
bool tile_adjoint_bounds(tile_adjoint *adjoint, tile *bounds);

#endif
