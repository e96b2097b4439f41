/* native_plan.h: a program as generated C: loops over rows, groups of a block, and their text.
 *
 * The loops of a field-form program come from the row plan with every op on its own. A value that
 * is read at another row or another element than its own is kept: a row of it, or a ring of rows.
 * Kept values of one level (how many kept values deep) and one range are made in one loop, a
 * stage; the last stage makes what is written. Everything else is a local variable of the loop. */
#ifndef TILE_CORE_NATIVE_PLAN_H
#define TILE_CORE_NATIVE_PLAN_H

#include "core/exec_rows.h"
#include "core/native_abi.h"
#include "core/native_text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TILE_STAGES_MAX = 48 };

/* An array's row as a stage reads or writes it: elements low .. high beside each one at hand. */
typedef struct tile_native_line {
    int32_t op; /* of the row plan */
    int64_t low, high;
    bool writes, adds;
    bool single; /* one element for the whole row */
} tile_native_line;

/* A kept value, read at a row offset or made (at its last). */
typedef struct tile_native_tap {
    int32_t item;
    int64_t row;
} tile_native_tap;

/* A loop over a row, made at a row offset ahead of the row at hand. */
typedef struct tile_native_loop {
    int32_t level;
    int64_t row, left, right, warm;
    int32_t line, line_count; /* in the plan's lists */
    int32_t tap, tap_count;
    int32_t iota, iota_count;
} tile_native_loop;

/* What becomes of an item. Home: the stage whose kept values it is computed from, at the same
 * element and row, and from nothing else; when it is kept it is made there too, at that stage's
 * row, which may be further ahead than its own. */
typedef struct tile_native_item {
    int32_t stage; /* kept: the stage that makes it; else -1 */
    int32_t home;  /* or -1 */
    int64_t x;     /* not kept: computed this far from the element at hand */
    bool read;
    uint64_t need; /* the stages that compute it */
    size_t place, pitch;
    int64_t height;
} tile_native_item;

typedef struct tile_native_plan {
    const tile_executable *exe;
    tile_rows *rows; /* NULL: no loops over rows */
    tile_native_loop stage[TILE_STAGES_MAX];
    int32_t stage_count;
    tile_native_item *item; /* per item of rows */
    tile_native_line *line;
    int32_t line_count, line_capacity;
    tile_native_tap *tap;
    int32_t tap_count, tap_capacity;
    int32_t *iota; /* items */
    int32_t iota_count, iota_capacity;
    tile_strip *strip; /* what the text calls */
    int32_t strip_count, strip_capacity;
    int32_t *group; /* per step of the block plan: its function, or -1; NULL: none */
    int32_t group_count;
    int64_t panel;     /* elements of a row at most */
    size_t kept_bytes; /* of the rings of a thread */
    double element_ns; /* estimate */
    tile_text source;
} tile_native_plan;

/* Plans and writes the C text. No loops, no groups: there is nothing to gain. */
tile_status tile_native_plan_make(const tile_executable *exe, tile_native_plan *plan) TILE_MUST_USE;
void tile_native_plan_clear(tile_native_plan *plan);

/* The stages (native_plan.c). rows is cleared when the program is no case for it. */
tile_status tile_native_plan_stages(tile_native_plan *plan) TILE_MUST_USE;

/* The item that op k computes, or -1. */
static inline int32_t tile_native_made(const tile_rows *rows, int32_t k) {
    const tile_row_op *op = &rows->op[k];
    return op->kind == TILE_ROW_STRIP && op->item >= 0 && op->run ? op->item : -1;
}

/* What a write of the row plan writes. */
tile_row_operand tile_native_written(const tile_rows *rows, const tile_row_op *op);

/* Text of the stages, of the groups (native_rows.c, native_groups.c). */
typedef struct tile_native_writer {
    tile_native_plan *plan;
    tile_text body;
    tile_text uses; /* names of the lane functions in body, a space around each */
} tile_native_writer;

tile_status tile_native_write_stages(tile_native_writer *w) TILE_MUST_USE;
tile_status tile_native_write_groups(tile_native_writer *w) TILE_MUST_USE;

/* The C type of an element; of one that generated code only moves: an integer of its size. */
const char *tile_native_type(tile_dtype dtype);

/* The lane function that is an elementwise op on these types, noted as used. false: there is none,
 * the op is called as a strip. */
bool tile_native_function(tile_native_writer *w, const tile_op *op, const tile_dtype *in,
                          tile_dtype out, char name[64]);

/* The number of a strip in the table. */
tile_status tile_native_strip_of(tile_native_plan *plan, const tile_op *op, const tile_dtype *in,
                                 tile_dtype out, int32_t *number) TILE_MUST_USE;

/* What the compiler is told; ends with NULL. */
extern const char *const tile_native_flags[];

/* Before a loop whose iterations may run in any order. */
#define TILE_NATIVE_LOOP "TILE_INDEPENDENT\n"

#ifdef __cplusplus
}
#endif

#endif
