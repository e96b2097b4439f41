/* native_abi.h: what generated code is given; its text stands in every generated file too. */
#ifndef TILE_CORE_NATIVE_ABI_H
#define TILE_CORE_NATIVE_ABI_H

#include <stdint.h>

/* One elementwise op over n elements, as the interpreter runs it. */
typedef void (*tile_native_strip)(const void *const *in, void *y, int64_t n);

/* A piece of a row. Pointers are to element 0 of the field's row. */
typedef struct tile_native_call {
    char *const *line;       /* rows of arrays; of one element: where it lies */
    char *const *ring;       /* rows that are kept: read at a row offset, or made */
    const void *const *flat; /* values that are the same everywhere */
    const int64_t *start;    /* of each iota: its value in this row, at element 0 */
    const tile_native_strip *strip;
    int64_t begin, n; /* elements of the row */
    int64_t again;    /* a loop may run a second time: what it writes it does not read, but for what
                         it saves itself */
} tile_native_call;

/* A loop over a piece of a row; a group of elementwise ops of a block. */
typedef void (*tile_native_stage)(const tile_native_call *call);
typedef void (*tile_native_group)(char *arena, const tile_native_strip *strip);

#endif
