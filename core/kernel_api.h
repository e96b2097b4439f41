/* kernel_api.h: building kernels and launching them. */
#ifndef TILE_CORE_KERNEL_API_H
#define TILE_CORE_KERNEL_API_H

#include "core/types_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each builder call returns a tile, so that calls nest. The first error sticks to the builder with
 * the place of the call in the program's source, and comes out of tile_kernel_end. */

/* tile_here: notes the source line of the builder call that follows; the macros below call it. */
TILE_API void tile_here(const char *file, int line);

/* tile_kernel_begin: start a kernel. */
TILE_API tile_builder *tile_kernel_begin(tile_context *ctx, const char *name);

/* tile_kernel_end: verify and finish the kernel; the builder is gone afterwards.
 *
 * errors   the first error of the builder calls; TILE_E_MEMORY
 */
TILE_API tile_status tile_kernel_end(tile_builder *b, tile_kernel **kernel) TILE_MUST_USE;

/* tile_kernel_destroy: let go of a kernel; NULL is fine. Tapes that recorded it keep it. */
TILE_API void tile_kernel_destroy(tile_kernel *kernel);

/* tile_kernel_print: the kernel's program as text.
 *
 * errors   TILE_E_ARGUMENT, TILE_E_FILE
 */
TILE_API tile_status tile_kernel_print(const tile_kernel *kernel, FILE *out) TILE_MUST_USE;

/* tile_kernel_print_adjoint: the text of the kernels that the tape runs backward for it, when every
 * float array parameter is active and no two share memory.
 *
 * errors   TILE_E_NO_ADJOINT names op, file and line
 */
TILE_API tile_status tile_kernel_print_adjoint(tile_kernel *kernel, FILE *out) TILE_MUST_USE;

/* tile_kernel_set_adjoint: use another kernel as the adjoint. Its parameters are the kernel's own,
 * in order, then for each float array parameter, in order, its gradient (read and written): of the
 * parameter's dtype, but float32 for a 16-bit float.
 *
 * errors   TILE_E_ARGUMENT the parameters do not match
 */
TILE_API tile_status tile_kernel_set_adjoint(tile_kernel *kernel,
                                             tile_kernel *adjoint) TILE_MUST_USE;

/* tile_array_param: an array given at each launch.
 *
 * in       name an identifier that no other parameter has
 */
TILE_API tile_param tile_array_param(tile_builder *b, const char *name, tile_dtype dtype, int rank);

/* tile_int_param, tile_real_param: a rank-0 tile given at each launch; int64, or of a float dtype.
 * */
TILE_API tile tile_int_param(tile_builder *b, const char *name);
TILE_API tile tile_real_param(tile_builder *b, const char *name, tile_dtype dtype);

/* tile_block_index: the block's index along a grid axis, int64. */
TILE_API tile tile_block_index(tile_builder *b, int axis);

/* tile_block_start: block index along a grid axis, times step. */
TILE_API tile tile_block_start(tile_builder *b, int axis, int64_t step);

/* tile_grid_size: how many blocks along a grid axis, int64. */
TILE_API tile tile_grid_size(tile_builder *b, int axis);

/* tile_int, tile_real: a rank-0 constant: int64; of a float dtype. */
TILE_API tile tile_int(tile_builder *b, int64_t value);
TILE_API tile tile_real(tile_builder *b, tile_dtype dtype, double value);

/* tile_formula: a formula over tiles, called through tile_expr; parsed when the kernel is built.
 *
 *   tile_expr("a*x + b", a, x, b)
 *
 * Numbers take the type of the operands beside them; / is real division (integers: div, mod,
 * floor); the functions are the elementwise ops by name; a ? b : c, comparisons, && || !; operands
 * broadcast as in NumPy.
 *
 * errors   TILE_E_FORMULA with a caret under the place
 */
TILE_API tile tile_formula(const char *formula, const char *names, tile_list operands);

/* A loop: count iterations, tiles carried from one to the next. */
typedef struct tile_loop {
    tile_builder *builder;
    int32_t node;
    tile index; /* rank-0 int64, 0..count-1 */
    int carried_count;
    tile carried[TILE_CARRIED_MAX]; /* inside the body; after tile_loop_end: the final values */
} tile_loop;

/* tile_loop_begin: count is a rank-0 integer tile known at the launch: made of constants and
 * integer parameters. Below 1: no iteration, the results are the initial tiles.
 *
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT count depends on the block or on an array
 */
TILE_API tile_loop tile_loop_begin(tile_builder *b, tile count, tile_list initial);

/* tile_loop_end: next holds the carried tiles of the next iteration, same shapes and dtypes. */
TILE_API void tile_loop_end(tile_loop *loop, tile_list next);

/* tile_launch: run a kernel on every block of a grid; recorded when the tape is not NULL.
 *
 * in       args in the order of the kernel's parameters; see TILE_ARGS
 * special  a grid with a zero axis does nothing
 * repeats  same bits on every run and for any number of threads: blocks count as run in row-major
 *          order
 * errors   TILE_E_ARGUMENT, TILE_E_DTYPE, TILE_E_SHAPE name the parameter; TILE_E_NO_ADJOINT;
 *          TILE_E_MEMORY. A failed launch changes nothing
 */
TILE_API tile_status tile_launch(tape *record, tile_kernel *kernel, tile_grid grid,
                                 tile_args args) TILE_MUST_USE;

/* tile_offset_shift: an offset moved by constants, one per dimension. */
TILE_API tile_offset tile_offset_shift(tile_offset at, tile_shape by);

#ifdef __cplusplus
}
#endif
#endif
