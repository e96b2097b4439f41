/* exec_fuse.c: joins ops of a row plan that are read once by the op after them.
 *
 * A strip costs its passes through the first-level cache more than its arithmetic: sums of up to
 * eight operands and pairs of simple ops are worth one pass. */
#include "core/exec_fuse.h"

#include "core/exec_rows.h"

static const tile_fused *strips(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) return &tile_fused_avx2;
#endif
    return &tile_fused_base;
}

typedef struct fuser {
    tile_rows *rows;
    const tile_program *p;
    const tile_fused *strips;
    const tile_op *op[TILE_FUSED_FIRST];
} fuser;

/* The op's code when it stands alone; -1: it is no simple float op. wide: float64. */
static int code_of(const fuser *f, const tile_row_op *op, int *wide) {
    if (op->kind != TILE_ROW_STRIP || op->item < 0 || !op->run || op->fused) return -1;
    const tile_row_item *item = &f->rows->item[op->item];
    const tile_dtype dtype = f->p->value[item->value].dtype;
    if (dtype != TILE_F32 && dtype != TILE_F64) return -1;
    *wide = dtype == TILE_F64;
    for (int k = 0; k < TILE_FUSED_FIRST; k++)
        if (f->op[k] && item->node->op == f->op[k]) return k;
    return -1;
}

/* The op that computes an operand which only this op reads, with no write between them; or -1. */
static int32_t maker_of(const fuser *f, int32_t reader, int k) {
    const tile_row_operand *in = &f->rows->op[reader].in[k];
    if (in->item < 0) return -1;
    const tile_row_item *item = &f->rows->item[in->item];
    if (item->kind != TILE_ROW_STRIP || item->uses != 1) return -1;
    for (int32_t j = reader - 1; j >= 0 && !f->rows->op[j].writes; j--)
        if (f->rows->op[j].item == in->item) return j;
    return -1;
}

/* Puts the maker's operands where its result was read, then the reader's other operands. The result
 * is read x elements off, and so are its operands. */
static void join(fuser *f, int32_t reader, int k, int32_t maker, tile_strip run) {
    tile_row_op *op = &f->rows->op[reader], *from = &f->rows->op[maker];
    tile_row_operand in[TILE_ROW_INPUTS];
    int32_t n = 0;
    for (int32_t i = 0; i < from->n_in; i++) {
        in[n] = from->in[i];
        if (in[n].item >= 0) in[n].x += op->in[k].x;
        n++;
    }
    for (int32_t i = 0; i < op->n_in; i++)
        if (i != k) in[n++] = op->in[i];
    for (int32_t i = 0; i < n; i++) {
        op->in[i] = in[i];
        if (in[i].item >= 0 && f->rows->item[in[i].item].last < reader)
            f->rows->item[in[i].item].last = reader;
    }
    op->n_in = n;
    op->run = run;
    op->fused = true;
    from->run = NULL;
    from->dropped = true;
}

/* Sums: the maker is an addition or a sum, the reader an addition that may be one part of it. */
static bool join_sum(fuser *f, int32_t reader, int k) {
    int wide = 0;
    tile_row_op *op = &f->rows->op[reader];
    if (code_of(f, op, &wide) != TILE_FUSED_ADD) return false;
    const int32_t maker = maker_of(f, reader, k);
    if (maker < 0) return false;
    const tile_row_op *from = &f->rows->op[maker];
    int same = 0;
    if (!from->sum && code_of(f, from, &same) != TILE_FUSED_ADD) return false;
    if (from->n_in + 1 > TILE_SUM_MAX) return false;
    join(f, reader, k, maker, f->strips->sum[wide][from->n_in + 1]);
    op->sum = true;
    return true;
}

static int second_code(int code, int k) {
    if (k == 0) return code;
    if (code == TILE_FUSED_SUB) return TILE_FUSED_FROM;
    return code == TILE_FUSED_GUARDED ? TILE_FUSED_GUARDED_BY : code;
}

static bool join_pair(fuser *f, int32_t reader, int k) {
    int wide = 0, same = 0;
    const int second = code_of(f, &f->rows->op[reader], &wide);
    const int32_t maker = second < 0 ? -1 : maker_of(f, reader, k);
    const int first = maker < 0 ? -1 : code_of(f, &f->rows->op[maker], &same);
    if (first < 0) return false;
    join(f, reader, k, maker, f->strips->pair[wide][first][second_code(second, k)]);
    return true;
}

static void drop_joined(fuser *f) {
    tile_rows *rows = f->rows;
    int32_t count = 0;
    for (int32_t k = 0; k < rows->item_count; k++)
        if (rows->item[k].last >= 0) rows->item[k].last = -1;
    for (int32_t k = 0; k < rows->op_count; k++) {
        if (rows->op[k].dropped) continue;
        rows->op[count] = rows->op[k];
        for (int32_t i = 0; i < rows->op[count].n_in; i++)
            if (rows->op[count].in[i].item >= 0)
                rows->item[rows->op[count].in[i].item].last = count;
        count++;
    }
    rows->op_count = count;
}

void tile_rows_fuse(tile_rows *rows, const tile_program *program) {
    fuser f = {.rows = rows,
               .p = program,
               .strips = strips(),
               .op = {tile_op_find("add"), tile_op_find("sub"), tile_op_find("mul"),
                      tile_op_find("guarded_mul"), tile_op_find("neg")}};
    for (int32_t k = 0; k < rows->op_count; k++)
        for (int i = 0; i < 2 && i < rows->op[k].n_in; i++)
            if (join_sum(&f, k, i)) break;
    for (int32_t k = 0; k < rows->op_count; k++)
        for (int i = 0; i < 2 && i < rows->op[k].n_in; i++)
            if (join_pair(&f, k, i)) break;
    drop_joined(&f);
}
