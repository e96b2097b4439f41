/* exec.h: running a program on a context. */
#ifndef TILE_CORE_EXEC_H
#define TILE_CORE_EXEC_H

#include "core/analysis.h"
#include "core/array.h"
#include "core/context.h"

/* A program ready to run: analysed, planned. Constant while it runs; made once. */
typedef struct tile_executable tile_executable;

tile_status tile_executable_create(tile_context *ctx, tile_program *program /* taken */,
                                   tile_executable **exe) TILE_MUST_USE;
void tile_executable_destroy(tile_executable *exe);
const tile_program *tile_executable_program(const tile_executable *exe);
const tile_analysis *tile_executable_analysis(const tile_executable *exe);

/* A scalar argument. */
typedef union tile_scalar {
    int64_t integer;
    double real;
} tile_scalar;

/* One run. */
typedef struct tile_bound {
    int64_t grid[TILE_GRID_RANK];
    int64_t domain[TILE_GRID_RANK]; /* grid of the forward launch, for adjoints; else the same */
    tile_memory array[TILE_PROGRAM_PARAMS]; /* by parameter index; read and write addresses */
    tile_scalar scalar[TILE_PROGRAM_PARAMS];
    void *stash; /* kept values of this launch; NULL: the program has none */
} tile_bound;

/* Bytes of stash that a launch needs; slots with their loop counts are evaluated with the scalar
 * arguments. */
tile_status tile_stash_bytes(const tile_executable *exe, const tile_bound *bound,
                             size_t *bytes) TILE_MUST_USE;

/* Makes sure that running cannot fail for want of memory. */
tile_status tile_executable_reserve(tile_executable *exe, const tile_bound *bound) TILE_MUST_USE;

/* Shared memory of a block: the most that values in it need at one time. */
tile_status tile_shared_bytes(const tile_program *program, size_t *bytes) TILE_MUST_USE;

/* Whether a launch may end in an execution error. false: it cannot. */
bool tile_executable_may_fail(tile_executable *exe, const tile_bound *bound);

/* Runs every block. Results have the same bits for any number of threads, and are as if blocks ran
 * one after the other in row-major order (reverse order when program.reverse). Arrays may alias.
 *
 * errors   TILE_E_EXECUTION of the first block that failed: it stopped there, the others have run
 */
tile_status tile_execute(tile_executable *exe, const tile_bound *bound) TILE_MUST_USE;

/* For tests and benchmarks: run block by block even where the field form holds. */
void tile_execute_by_blocks(tile_executable *exe, bool on);

#endif
