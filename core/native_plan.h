/* native_plan.h: a program as generated C: loops over rows, groups of a block, and their text. The
 * blocks have a plan of their own (native_order.h).
 *
 * The loops of a field-form program come from the row plan with every op on its own. A value that
 * is read at several rows, or at several distances along a row, is kept: a row of it, or a ring of
 * rows. A kept value whose operands are there at its own element is made in their loop, else in
 * the next: loop k makes the kept values of level k, all at one row ahead of the row at hand; the
 * last makes what is written. Everything else is a local variable of each loop that needs it. */
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
    int32_t op;    /* of the row plan */
    int64_t ahead; /* read so many rows further on than the op says */
    int64_t low, high;
    bool writes, adds;
    bool single; /* one element for the whole row */
} tile_native_line;

/* A kept value at a row offset. */
typedef struct tile_native_tap {
    int32_t item;
    int64_t row;
} tile_native_tap;

/* An iota, so many rows further on. */
typedef struct tile_native_iota {
    int32_t item;
    int64_t ahead;
} tile_native_iota;

/* A loop over a row: kept values are made at a row offset, left and right of the elements at hand,
 * and from so many rows before the first on. */
typedef struct tile_native_loop {
    int64_t row, left, right, warm;
    int32_t line, line_count; /* in the plan's lists */
    int32_t tap, tap_count;
    int32_t iota, iota_count;
} tile_native_loop;

/* What becomes of an item. */
typedef struct tile_native_item {
    bool kept;
    bool folded;   /* written out where it is read: cheap, and read at several places */
    int32_t level; /* kept: the stage that makes it */
    int32_t apart; /* the level of what reads it beside its element */
    uint64_t need; /* the stages that compute it */
    int64_t x,
        ahead;   /* in the stage at hand: computed beside the element, further on than its row */
    int64_t low; /* kept: the first row at which it is read */
    int64_t height;
} tile_native_item;

typedef struct tile_native_view tile_native_view; /* native_order.h */

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
    tile_native_iota *iota;
    int32_t iota_count, iota_capacity;
    tile_strip *strip; /* what the text calls */
    int32_t strip_count, strip_capacity;
    tile_plan blocks;       /* no rows: the block plan */
    tile_native_view *view; /* per value: what is read in its place; NULL with rows */
    int32_t *group;         /* per step of blocks: its function, or -1; NULL: none */
    int32_t group_count;
    int64_t warm;      /* rows before the first at which the first loop begins */
    int64_t panel;     /* elements of a row at most */
    size_t kept_bytes; /* of the rings of a thread */
    double element_ns; /* estimate */
    tile_text source;
} tile_native_plan;

/* Plans and writes the C text: loops over rows where the program may run so, else groups. None of
 * either: there is nothing to gain. */
tile_status tile_native_plan_make(const tile_executable *exe, tile_native_plan *plan) TILE_MUST_USE;
void tile_native_plan_clear(tile_native_plan *plan);

/* The stages (native_plan.c). rows is cleared when the program is no case for it. */
tile_status tile_native_plan_stages(tile_native_plan *plan) TILE_MUST_USE;

/* Fills x and ahead of what a stage computes. false: some value would be computed at two places. */
bool tile_native_find_places(tile_native_plan *plan, int32_t stage);

/* Where a reader computes, relative to element and row at hand. */
typedef struct tile_native_base {
    int64_t x, ahead;
} tile_native_base;

/* Where an operand is read. */
typedef struct tile_native_spot {
    int64_t row, x;
    int64_t ahead; /* rows further on than the operand says */
    bool local;    /* what the stage computes at this very element */
} tile_native_spot;

/* Of an item that the stage computes; -1: of its writes. */
tile_native_base tile_native_base_of(const tile_native_plan *plan, int32_t stage, int32_t reader);
tile_native_spot tile_native_spot_of(const tile_native_plan *plan, int32_t stage,
                                     tile_native_base base, const tile_row_operand *in);

/* Of a folded item that is read there. */
static inline tile_native_base tile_native_base_at(const tile_native_plan *plan, int32_t item,
                                                   const tile_native_spot *at) {
    return (tile_native_base){at->x, at->row - plan->rows->item[item].high};
}

/* The item that op k computes, or -1. */
static inline int32_t tile_native_made(const tile_rows *rows, int32_t k) {
    const tile_row_op *op = &rows->op[k];
    return op->kind == TILE_ROW_STRIP && op->item >= 0 && op->run ? op->item : -1;
}

static inline bool tile_native_is_strip(const tile_rows *rows, const tile_row_operand *in) {
    return in->item >= 0 && rows->item[in->item].kind == TILE_ROW_STRIP;
}

/* Bytes from one kept row to the next where rows have so many elements. */
size_t tile_native_pitch(const tile_native_plan *plan, int32_t item, int64_t panel);

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

/* Guarded products and quotients (native_guard.c).
 *
 * Where nothing is NaN a guard changes no bit. So loops run without guards first and look at what
 * comes out; where that is NaN they run again with guards. This needs that a NaN shows: it goes
 * through sums, products, quotients and roots. */
bool tile_native_is_guarded(const tile_op *op);
bool tile_native_shows_nan(const tile_op *op);
bool tile_native_is_product(const tile_op *op); /* or a quotient, guarded or not */

/* The name of the lane function that takes the guard as its first argument, noted as used. */
void tile_native_try(tile_native_writer *w, const char *function, char name[64]);
void tile_native_write_tries(const tile_native_writer *w, tile_text *out);

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
