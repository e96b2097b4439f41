/* analysis.h: what a program does with its arrays, found once when it is built. */
#ifndef TILE_CORE_ANALYSIS_H
#define TILE_CORE_ANALYSIS_H

#include "core/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An int64 rank-0 value as constant + sum over axes of coefficient * block index + uniform. */
typedef struct tile_affine {
    bool known;
    int64_t constant;
    int64_t coefficient[TILE_GRID_RANK];
    int32_t uniform; /* a flat rank-0 int64 value; -1: none */
} tile_affine;

typedef enum tile_variance {
    TILE_UNIFORM, /* the same for every block of a launch (parameters, constants, their maths, and
                     elements at uniform places of arrays that the kernel does not write) */
    TILE_AFFINE,  /* rank-0 int64, affine in the block index with constant coefficients */
    TILE_VARYING
} tile_variance;

/* Field form: the kernel is elementwise on windows at block * tile + constant, so all its blocks
 * together are one large elementwise loop and may be run as long rows.
 *
 * The field has rank dimensions. Dimension d is cut into core[d] per block along grid axis
 * axis[d] (-1: not cut, one block covers it). A value of rank r < rank is aligned at the last
 * dimension. Each value's extent in a dimension is core[d] + extra (a halo that sub-tiles at
 * constant offsets pick from) or 1. Each array is written at most once, through windows of
 * exactly the core, and an array that is written is read only at exactly the same window. */
typedef struct tile_field {
    bool ok;
    const char *why; /* when not: the first reason, for tests and printing */
    int rank;
    int64_t core[TILE_RANK_MAX];
    int axis[TILE_RANK_MAX];
} tile_field;

typedef struct tile_analysis {
    int32_t *order; /* nodes as they run: a loop, then its body */
    int32_t order_count;
    tile_variance *variance; /* per value */
    tile_affine *affine;     /* per value; known false where it is none */
    bool *flat; /* per value: uniform and the same in every element, found on one element */
    tile_field field;
    unsigned reads[TILE_PROGRAM_PARAMS]; /* per array parameter: bit per tile_access */
    uint64_t written;                    /* array parameters that are written */
    uint64_t sized;                      /* array parameters whose extents are asked for */
    uint64_t uniform;    /* array parameters with loads that count as uniform; when one of them is
                            also written under another name, no affine value can be trusted */
    uint64_t answered;   /* array parameters with additions or updates whose previous values
                            are used */
    bool ordered_needed; /* some param's writes of one block can meet another block's accesses */
} tile_analysis;

/* The window of a node with an access: extents of its tile, where it begins. */
typedef struct tile_access_window {
    int rank;
    int64_t extent[TILE_RANK_MAX];
    tile_affine at[TILE_RANK_MAX]; /* the constant shift added */
    int wild;                      /* dimension that goes by indices, or -1 */
} tile_access_window;

tile_access_window tile_window_of_node(const tile_program *program, const tile_analysis *analysis,
                                       const tile_node *node);

/* How a node's inputs are laid out: tiles, then window offsets, then bounds (low, high per
 * dimension). */
typedef struct tile_inputs {
    int tiles, offsets, bounds; /* how many */
} tile_inputs;

tile_inputs tile_inputs_of(const tile_program *program, const tile_node *node);

/* Where a view (sub-tile) lies in its operand. false: not at a constant place, or not inside. */
bool tile_view_shift(const tile_program *program, const tile_node *node,
                     int64_t shift[TILE_RANK_MAX]);

/* Whether two different blocks never touch one element through these parameters unless both only
 * read it. params: bits of array parameters that are one array (one bit: the parameter alone).
 * Conservative: false when it cannot be seen. Grid axes whose index the program does not ask for
 * count as one block; _on: axes with one block do not matter. */
bool tile_blocks_apart(const tile_program *program, const tile_analysis *analysis, uint64_t params);
bool tile_blocks_apart_on(const tile_program *program, const tile_analysis *analysis,
                          uint64_t params, const int64_t grid[TILE_GRID_RANK]);

tile_status tile_analyse(const tile_program *program, tile_analysis *analysis) TILE_MUST_USE;
void tile_analysis_clear(tile_analysis *analysis);

/* Fills analysis->field; called by tile_analyse. */
tile_status tile_field_find(const tile_program *program, tile_analysis *analysis) TILE_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
