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

/* tile_kernel_shared_bytes: shared memory of a block of the kernel, in bytes: the most that tiles
 * which live at one time need. */
TILE_API size_t tile_kernel_shared_bytes(const tile_kernel *kernel);

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
 * parameter's dtype, but float32 for a 16-bit float. A parameter of structs stands for one of each
 * member, a plain array whose shape ends with the member's. A recorded launch that gives it one
 * array as two parameters, one of which is written, is refused.
 *
 * errors   TILE_E_ARGUMENT the parameters do not match
 */
TILE_API tile_status tile_kernel_set_adjoint(tile_kernel *kernel,
                                             tile_kernel *adjoint) TILE_MUST_USE;

/* tile_array_param: an array given at each launch.
 *
 * in       name an identifier that no other parameter has; rank of the array; a struct dtype counts
 *          as one parameter for each member
 * errors   TILE_E_ARGUMENT more than TILE_PARAMS_MAX parameters, or a rank outside 0..6, that of a
 *          struct's members added
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

/* tile_extent: how many places an array has along dimension d, int64; known at the launch.
 *
 * errors   TILE_E_ARGUMENT d outside 0..rank-1
 */
TILE_API tile tile_extent(tile_param a, int d);

/* tile_require: an execution error unless low <= value < high. The block that finds it stops there,
 * the others run; the error of the first such block comes out at the next synchronisation.
 *
 * in       value, low, high rank-0 integer tiles; what: a string constant that names value
 * errors   TILE_E_ARGUMENT, TILE_E_DTYPE
 */
TILE_API void tile_require(tile value, tile low, tile high, const char *what);

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

/* tile_set_space: say where a block keeps a tile, and get the tile back. Tiles are in registers
 * unless said otherwise; indices of loads, stores and atomics, and stacks, are always in shared
 * memory; previous values of an atomic are where the added tile is.
 *
 * errors   TILE_E_ARGUMENT space is neither TILE_REGISTER nor TILE_SHARED; from tile_kernel_end:
 *          TILE_E_MEMORY tiles that live at one time need more shared memory than a block has
 */
TILE_API tile tile_set_space(tile t, tile_space space);

/* tile_space_of: where a block keeps a tile; TILE_REGISTER for what is no tile. */
TILE_API tile_space tile_space_of(tile t);

/* A loop: tiles carried from one iteration to the next, a count or a condition. */
typedef struct tile_loop {
    tile_builder *builder;
    int32_t node;
    int32_t states; /* stacks and the like that were there when it began */
    tile index;     /* rank-0 int64, 0 in the first iteration */
    tile trips;     /* after tile_while_end: rank-0 int64, how often the body ran */
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

/* tile_while_begin: a loop that goes on while a condition holds.
 *
 *   for (index = 0; go; index++) { body; go = what tile_while_end is given }
 *
 * in       go rank-0 bool, one for the block; it may depend on data; most rank-0 int64 known at
 *          the launch, as the count of tile_loop_begin: the most iterations there may be
 * special  go false at first: no iteration, the results are the initial tiles. When go still holds
 *          after most iterations the loop ends, and that is an execution error: TILE_E_EXECUTION
 *          from the next synchronisation, which names kernel, place and block
 * repeats  the gradient runs the body backwards as often as it ran; what it needs of each iteration
 *          is kept, in memory for most iterations
 * errors   TILE_E_DTYPE, TILE_E_ARGUMENT most depends on the block or on an array
 */
TILE_API tile_loop tile_while_begin(tile_builder *b, tile go, tile most, tile_list initial);

/* tile_while_end: go says whether there is a next iteration, next holds its carried tiles. */
TILE_API void tile_while_end(tile_loop *loop, tile go, tile_list next);

/* tile_launch: run a kernel on every block of a grid; recorded when the tape is not NULL.
 *
 * in       args in the order of the kernel's parameters; see TILE_ARGS
 * special  a grid with a zero axis does nothing
 * repeats  same bits on every run and for any number of threads: blocks count as run in row-major
 *          order
 * errors   TILE_E_ARGUMENT, TILE_E_DTYPE, TILE_E_SHAPE name the parameter; TILE_E_NO_ADJOINT;
 *          TILE_E_MEMORY. A failed launch changes nothing. An execution error (tile_require, an
 *          index outside a partition view) comes out at the next synchronisation; in checked mode
 *          TILE_E_EXECUTION is returned here, and nothing has changed
 */
TILE_API tile_status tile_launch(tape *record, tile_kernel *kernel, tile_grid grid,
                                 tile_args args) TILE_MUST_USE;

/* tile_offset_shift: an offset moved by constants, one per dimension. */
TILE_API tile_offset tile_offset_shift(tile_offset at, tile_shape by);

#ifdef __cplusplus
}
#endif
#endif
