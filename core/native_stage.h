/* native_stage.h: what the files that write a loop over rows share. */
#ifndef TILE_CORE_NATIVE_STAGE_H
#define TILE_CORE_NATIVE_STAGE_H

#include "core/native_plan.h"

enum { TILE_EXPRESSION = 400, TILE_STAGE_NAME = 32 };

/* The stage that is being written. */
typedef struct tile_stage_writer {
    tile_native_writer *w;
    tile_native_plan *plan;
    const tile_rows *rows;
    const tile_program *p;
    tile_text *out; /* the loops; what stands before them is written later */
    int32_t stage;
    int32_t *phase; /* per item: of the stage that is written, the loop after which it is there */
    bool *called;   /* per item: by a strip */
    bool *array;    /* per item: it is used in another loop than its own */
    bool *several;  /* per item: others are the same value at other places */
    bool *flats;    /* per flat value: used */
    int32_t phases;
    bool blocks; /* the stage goes by blocks */
    bool *seen;  /* per item: where it is NaN, something that the stage writes or keeps is */
    bool tries;  /* the stage is written without guards first, where that is seen */
    bool tried;  /* and had some */
    bool plain;  /* the operands at hand are seen, too */
    tile_status status;
} tile_stage_writer;

/* The first failure stays. */
void tile_stage_fail(tile_stage_writer *b, tile_status status);

/* Element types: of an item, of an operand, of the inputs of an item's op. */
tile_dtype tile_stage_dtype(const tile_stage_writer *b, int32_t item);
tile_dtype tile_stage_dtype_read(const tile_stage_writer *b, const tile_row_operand *in);
void tile_stage_types(const tile_stage_writer *b, const tile_row_item *item,
                      tile_dtype in[TILE_OP_IN]);

/* Whether the stage computes an item; whether it keeps it. */
bool tile_stage_makes(const tile_stage_writer *b, int32_t item);
bool tile_stage_keeps(const tile_stage_writer *b, int32_t item);

/* Where an item computes (-1: the writes), where an operand is read. */
tile_native_base tile_stage_base(const tile_stage_writer *b, int32_t reader);
tile_native_spot tile_stage_spot(tile_stage_writer *b, tile_native_base base,
                                 const tile_row_operand *in);

/* The stage's number of a row of an array, read x elements off; of a kept value at a row. */
int32_t tile_stage_line(tile_stage_writer *b, int32_t op, int64_t ahead, int64_t x);
int32_t tile_stage_tap(tile_stage_writer *b, int32_t item, int64_t row);

/* Identifiers: the parameter's name and the line's number; kind and the value's number, and the
 * item's where there are several of the value. */
void tile_stage_line_name(const tile_stage_writer *b, int32_t line, char name[64]);
const char *tile_stage_item_name(const tile_stage_writer *b, char kind, int32_t item,
                                 char name[TILE_STAGE_NAME]);

/* Whether an iota grows along the row. */
bool tile_stage_along(const tile_stage_writer *b, const tile_row_item *item);

/* Fills seen of the stage at hand (native_guard.c). */
void tile_stage_find_seen(tile_stage_writer *b);

/* An operand as an expression in the loop of a phase; phase -1: for a call. */
void tile_stage_operand(tile_stage_writer *b, tile_native_base base, const tile_row_operand *in,
                        int32_t phase, char to[TILE_EXPRESSION]);
void tile_stage_operands(tile_stage_writer *b, tile_native_base base, const tile_row_item *item,
                         int32_t phase, char to[TILE_EXPRESSION]);

#endif
