/* native_group.h: what the files that write a group's C text share. */
#ifndef TILE_CORE_NATIVE_GROUP_H
#define TILE_CORE_NATIVE_GROUP_H

#include "core/native_order.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tile_read_kind {
    TILE_READ_SAME,   /* element for element */
    TILE_READ_SCALAR, /* one element */
    TILE_READ_FILLED, /* one element, that is called for: a piece full of it */
    TILE_READ_MOVED
} tile_read_kind;

/* An operand that the group does not make. Strides are by the nest's dimensions. */
typedef struct tile_group_read {
    int32_t value;
    tile_read_kind kind;
    size_t place; /* in the arena, of element 0 of what is read */
    int64_t first, stride[TILE_RANK_MAX];
} tile_group_read;

/* A sum, or an extreme, that is taken on the way. */
typedef struct tile_group_sum {
    int32_t strip;
    tile_native_fold fold;
    bool row;      /* along the last dimension */
    int64_t count; /* results */
    int64_t stride[TILE_RANK_MAX];
} tile_group_sum;

typedef struct tile_group_writer {
    tile_native_writer *w;
    const tile_program *p;
    const tile_native_view *view; /* per value */
    const tile_step *step;
    const tile_strip_step *strip; /* of the step */
    int32_t *made;                /* per value: the strip of the step that makes it, or -1 */
    int32_t *phase;               /* per strip: it is there after the loop of this number */
    bool *called, *array;         /* per strip: by a strip of the table; kept for a piece */
    int32_t phases;
    bool pieces; /* the elements go by pieces, not by rows */
    bool *seen;  /* per strip: where it is NaN, something that the group makes is */
    bool tried;  /* the group is written without guards first, where that is seen */
    int rank;    /* of the nest */
    int64_t extent[TILE_RANK_MAX];
    tile_group_read *read;
    int32_t read_count, read_capacity;
    int32_t *read_of; /* per value: its read, or -1 */
    tile_group_sum *sum;
    int32_t sum_count, sum_capacity;
} tile_group_writer;

enum { TILE_GROUP_EXPRESSION = 160 };

static inline bool tile_group_is_sum(const tile_group_writer *b, int32_t k) {
    return b->strip[k].node->op->kind != TILE_OP_ELEMENTWISE;
}

static inline tile_dtype tile_group_dtype(const tile_group_writer *b, int32_t k) {
    return b->p->value[b->strip[k].node->out].dtype;
}

/* The strip that makes operand i of strip k, or -1. */
static inline int32_t tile_group_maker(const tile_group_writer *b, int32_t k, int i) {
    return b->made[b->view[tile_node_in(b->p, b->strip[k].node, i)].base];
}

void tile_group_types(const tile_group_writer *b, int32_t k, tile_dtype in[TILE_OP_IN]);

/* Operands and sums of the group at hand, and the dimensions of its nest (native_nest.c). */
tile_status tile_group_find_nest(tile_group_writer *b) TILE_MUST_USE;

/* Text of a group in rows; in pieces, each a loop over some ops, calls, a loop, ... */
void tile_group_write_rows(tile_group_writer *b);
tile_status tile_group_write_pieces(tile_group_writer *b) TILE_MUST_USE;

/* Fills seen and tried (native_guard.c); runs group k again, with guards, where a NaN came out. */
void tile_group_find_seen(tile_group_writer *b);
void tile_group_write_again(tile_group_writer *b, int32_t k);

/* "const float v12 = add_f32(v9, r7[x]); // a + b", operands printed by operand(). */
typedef void (*tile_group_operand)(const tile_group_writer *b, int32_t k, int i,
                                   char to[TILE_GROUP_EXPRESSION]);
void tile_group_write_op(tile_group_writer *b, int32_t k, const char *margin,
                         tile_group_operand operand);

#ifdef __cplusplus
}
#endif

#endif
