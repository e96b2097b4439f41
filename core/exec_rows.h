/* exec_rows.h: the row plan: a field-form kernel as one elementwise loop over long rows.
 *
 * All blocks together are a field; it is walked row by row (the last dimension), each row in
 * strips that stay in the first-level cache. An item is a value at one place relative to the row
 * at hand: a strip of an array read where it lies, an iota, or a strip computed into a buffer.
 * Views and broadcasts are no items: they only move where an operand is read. A computed value
 * that is used at several row offsets is computed once per row, into a ring of rows, ahead of its
 * first use.
 *
 * The field's dimensions are padded to at least two here: dims - 2 is the row dimension. */
#ifndef TILE_CORE_EXEC_ROWS_H
#define TILE_CORE_EXEC_ROWS_H

#include "core/exec_internal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TILE_ROW_INPUTS = 8 };

/* The windows of some loads of one array, or of a write. Array dimension d is field dimension
 * skip + d; a dimension that does not move with the field has one element. */
typedef struct tile_row_window {
    const tile_node *node;
    int32_t param;
    size_t size; /* bytes of an element */
    int rank, skip;
    int64_t constant[TILE_RANK_MAX];
    size_t uniform[TILE_RANK_MAX]; /* place of a flat value, or TILE_NO_PLACE */
    size_t bound[2 * TILE_RANK_MAX];
    bool bounded;
    bool moves[TILE_RANK_MAX];
    uint64_t pad; /* its bytes: one element */
} tile_row_window;

typedef enum tile_row_kind { TILE_ROW_LOAD, TILE_ROW_IOTA, TILE_ROW_STRIP } tile_row_kind;

/* Operand: a slot of the pointer table, and bytes from the strip's first element. */
typedef struct tile_row_operand {
    int32_t item; /* or -1: flat */
    int32_t flat; /* index of the flat value */
    int32_t slot;
    int64_t row, x; /* where the item is read, relative to the row and the element at hand */
    int64_t offset;
} tile_row_operand;

typedef struct tile_row_item {
    tile_row_kind kind;
    const tile_node *node;
    int32_t value; /* LOAD: index of the window */
    int64_t
        at[TILE_RANK_MAX]; /* offset from the row at hand, but for the last dimension; STRIP: its
                                  row offset is high */
    int64_t low, high;     /* STRIP: row offsets at which it is used */
    int64_t left, right;   /* the strip is computed left and right of the elements at hand */
    int64_t warm;          /* rows before the first at which it is computed already */
    int32_t uses, last;    /* last position at which it is used */
    int32_t next;          /* item of the same value, or -1 */
    int32_t slot;
    size_t size;         /* bytes of an element */
    size_t place, pitch; /* in the thread's arena; bytes of a row of a ring, else 0 */
    int32_t n_in;
    tile_row_operand in[TILE_OP_IN];
} tile_row_item;

/* A pointer table entry: where the element at hand of an item lies. */
typedef struct tile_row_slot {
    int32_t item; /* a ring at one row offset; -1: of another kind */
    int64_t row;
} tile_row_slot;

typedef struct tile_row_op {
    tile_row_kind kind;
    bool writes; /* to an array: the strip's result, or operand 0 when there is no strip */
    bool adds;   /* and adds to it */
    bool fused;  /* more than one op of the program */
    bool sum;    /* of all operands */
    bool dropped;
    int32_t item;
    tile_strip run; /* NULL: operand 0 as it is */
    int32_t n_in;
    tile_row_operand in[TILE_ROW_INPUTS];
    int32_t out; /* slot of the result */
    int64_t left, right, warm, offset;
    int32_t window; /* that is read or written */
    tile_strip add;
} tile_row_op;

struct tile_rows {
    int dims;
    int64_t core[TILE_RANK_MAX];
    int axis[TILE_RANK_MAX];
    tile_row_window *window;
    int32_t window_count, window_capacity;
    tile_row_item *item;
    int32_t item_count, item_capacity;
    tile_row_op *op;
    int32_t op_count, op_capacity;
    tile_row_slot *slot;
    int32_t slot_count, slot_capacity;
    int32_t *flat; /* flat values that are read as strips */
    int32_t flat_count, flat_capacity;
    int64_t strip;     /* elements of a strip at most */
    int64_t panel;     /* elements of a row that rings hold */
    int64_t margin;    /* most elements that strips are longer */
    int64_t warm;      /* most rows before the first */
    size_t buffers;    /* bytes of strips and rings of a thread */
    size_t spill;      /* place of two strips, for writes that cannot be done in place */
    double element_ns; /* estimate */
};

/* Joins ops (exec_fuse.c); gives items slots and buffers (exec_row_layout.c). */
void tile_rows_fuse(tile_rows *rows, const tile_program *program);
tile_status tile_rows_lay_out(tile_rows *rows) TILE_MUST_USE;

/* A window at this launch; strides in bytes. */
typedef struct tile_row_place {
    char *read, *write;
    int64_t start[TILE_RANK_MAX], low[TILE_RANK_MAX], high[TILE_RANK_MAX];
    int64_t stride[TILE_RANK_MAX];
} tile_row_place;

typedef struct tile_row_job {
    const tile_run_state *run;
    const tile_rows *rows;
    tile_row_place *window;
    char **flat;  /* filled strips */
    bool *copied; /* per op: a load whose array changes before its last use */
    bool *shared; /* per op: a load of what another op writes; NULL: nobody asks */
    bool reread;  /* some load comes after a write to the same elements */
    bool crossed; /* some load is of what another parameter writes */
    char *arenas;
    size_t arena_bytes;
    int64_t low[TILE_RANK_MAX], high[TILE_RANK_MAX]; /* places of the field that are visited */
    int64_t lines;                                   /* rows of all dimensions but the last */
    int64_t bands, panels, panel;
    int64_t strip; /* elements of a strip, at most the plan's */
} tile_row_job;

/* The plan with its ops joined, or each on its own. */
tile_status tile_rows_plan_ops(const tile_executable *exe, bool joined,
                               tile_rows **rows) TILE_MUST_USE;

/* Fills window, copied, shared, reread, low, high of a job with run and rows, and room for lists.
 * false: the launch cannot run as rows. */
bool tile_rows_begin(tile_row_job *job);

/* Runs one part of the job arg: a band of rows, a panel of each. */
void tile_rows_part(int64_t part, int thread, void *arg);

/* Where a row lies in the window of an op: element x at at + x * step. */
typedef struct tile_row_lie {
    intptr_t base; /* of row 0, element 0 */
    int64_t row_step, step;
    int64_t row_low, row_high, x_low, x_high;
    char *at; /* of the row at hand; NULL: it is outside */
} tile_row_lie;

/* An op's window for all rows at a place of the dimensions before the last two. */
void tile_rows_lay(const tile_row_job *job, const tile_row_op *op, const int64_t *place,
                   tile_row_lie *lie);

/* An iota's value at element 0 of the row at a place; step: what it grows by along the row. */
uint64_t tile_rows_iota(const tile_row_job *job, const tile_row_item *item, const int64_t *place,
                        uint64_t *step);

/* The lines before part of parts, of count lines. */
static inline int64_t tile_share(int64_t count, int64_t part, int64_t parts) {
    const int64_t share = count / parts, rest = count % parts;
    return part * share + (part < rest ? part : rest);
}

/* n copies of one element. */
void tile_fill_elements(char *to, const void *value, size_t size, int64_t n);

static inline void *tile_cut(char **memory, size_t bytes) {
    void *part = *memory;
    *memory += tile_align(bytes);
    return part;
}

static inline int64_t tile_between(int64_t x, int64_t low, int64_t high) {
    if (x < low) return low;
    return x > high ? high : x;
}

#ifdef __cplusplus
}
#endif

#endif
