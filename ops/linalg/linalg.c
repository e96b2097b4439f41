/* linalg.c: dot, matmul. */
#include "ops/linalg/linalg_ops.h"

#include "core/adjoint.h"
#include "core/array.h"
#include "core/status.h"

#include "ops/linalg/matmul_fast.h"

static const tile_matmul_fast *fast(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) return &tile_matmul_avx512;
    if (__builtin_cpu_supports("avx2")) return &tile_matmul_avx2;
#endif
    return NULL;
}

static bool matmul_fast_f32(const float *a, const float *b, float *y, int64_t m, int64_t k,
                            int64_t n) {
    const tile_matmul_fast *f = fast();
    return f && f->f32(a, b, y, m, k, n);
}

static bool matmul_fast_f64(const double *a, const double *b, double *y, int64_t m, int64_t k,
                            int64_t n) {
    const tile_matmul_fast *f = fast();
    return f && f->f64(a, b, y, m, k, n);
}

#define TILE_MATMUL_FAST
#define TILE_KERNEL_FILE "ops/linalg/linalg_kernel.inc"
#include "core/for_each_dtype.inc"

enum { DOT, MATMUL, GUARDED_MATMUL, OPS };
static const tile_op ops[OPS];

static tile_status check_dtypes(const tile_infer *in) {
    TILE_CHECK(in->in_dtype[0] == in->in_dtype[1] && in->op->run[in->in_dtype[0]], TILE_E_DTYPE,
               "%s: a is %s, b is %s", in->op->name, tile_dtype_name(in->in_dtype[0]),
               tile_dtype_name(in->in_dtype[1]));
    return TILE_OK;
}

static tile_status infer_dot(tile_infer *in) {
    char text[2][TILE_SHAPE_TEXT];
    TILE_TRY(check_dtypes(in));
    TILE_CHECK(tile_shape_equal(in->in_shape[0], in->in_shape[1]), TILE_E_SHAPE,
               "dot: a is %s, b is %s", tile_shape_text(in->in_shape[0], text[0]),
               tile_shape_text(in->in_shape[1], text[1]));
    in->out_shape[0] = (tile_shape){.rank = 0};
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

static tile_status infer_matmul(tile_infer *in) {
    const tile_shape a = in->in_shape[0], b = in->in_shape[1];
    char text[2][TILE_SHAPE_TEXT];
    TILE_TRY(check_dtypes(in));
    bool fits = a.rank >= 2 && a.rank == b.rank && a.extent[a.rank - 1] == b.extent[a.rank - 2];
    for (int d = 0; fits && d < a.rank - 2; d++) fits = a.extent[d] == b.extent[d];
    TILE_CHECK(fits, TILE_E_SHAPE, "%s: a is %s, b is %s", in->op->name,
               tile_shape_text(a, text[0]), tile_shape_text(b, text[1]));
    in->out_shape[0] = a;
    in->out_shape[0].extent[a.rank - 1] = b.extent[a.rank - 1];
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

/* da = dy * b; db = dy * a */
static void adjoint_dot(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    static const char *const names[] = {"dy", "other"};
    for (int k = 0; k < 2 && tile_is_good(dy); k++) {
        if (!tile_adjoint_wants(adjoint, k)) continue;
        const tile operands[] = {dy, tile_adjoint_in(adjoint, 1 - k)};
        tile_adjoint_add(adjoint, k,
                         tile_formula_emit(dy.builder, "dy * other", 2, names, operands, "dy"));
    }
}

/* The last two dimensions swapped. */
static tile transposed(tile x) {
    if (!tile_is_good(x)) return x;
    const int rank = tile_shape_of_tile(x).rank;
    tile_emission e = {.op = tile_op_find("permute"), .n_in = 1, .in = {x}};
    for (int d = 0; d < rank; d++) e.attrs.n[d] = d;
    e.attrs.n[rank - 2] = rank - 1;
    e.attrs.n[rank - 1] = rank - 2;
    return tile_emit(x.builder, &e);
}

static tile emit(int op, tile a, tile b) {
    const tile_emission e = {.op = &ops[op], .n_in = 2, .in = {a, b}};
    return tile_emit(tile_builder_of(e.in, 2), &e);
}

/* da = dy b^T; db = (dy^T a)^T: where dy is 0 it contributes 0 */
static void adjoint_matmul(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (!tile_is_good(dy)) return;
    if (tile_adjoint_wants(adjoint, 0)) {
        const tile b = transposed(tile_adjoint_in(adjoint, 1));
        tile_adjoint_add(adjoint, 0, emit(GUARDED_MATMUL, dy, b));
    }
    if (tile_adjoint_wants(adjoint, 1)) {
        const tile a = tile_adjoint_in(adjoint, 0);
        tile_adjoint_add(adjoint, 1, transposed(emit(GUARDED_MATMUL, transposed(dy), a)));
    }
}

static bool fill(tile_sample *sample, tile_shape a, tile_shape b) {
    *sample = (tile_sample){
        .n_in = 2, .shape = {a, b}, .low = {-2, -2}, .high = {2, 2}, .build = sample->build};
    return true;
}

static tile build_dot(tile_builder *b, const tile_sample *sample, const tile *in) {
    (void)b;
    (void)sample;
    return emit(DOT, in[0], in[1]);
}

static bool sample_dot(int variant, tile_sample *sample) {
    static const tile_shape shapes[] = {{0, {0}},    {1, {1}},    {1, {31}},     {1, {33}},
                                        {1, {1100}}, {2, {3, 5}}, {3, {2, 3, 4}}};
    if (variant >= (int)(sizeof shapes / sizeof *shapes)) return false;
    sample->build = build_dot;
    return fill(sample, shapes[variant], shapes[variant]);
}

static tile build_matmul(tile_builder *b, const tile_sample *sample, const tile *in) {
    (void)b;
    (void)sample;
    return emit(MATMUL, in[0], in[1]);
}

static tile build_guarded_matmul(tile_builder *b, const tile_sample *sample, const tile *in) {
    (void)b;
    (void)sample;
    return emit(GUARDED_MATMUL, in[0], in[1]);
}

/* One element, below, at and past the blocks of the kernel (64 columns), batches. */
static bool fill_matmul(int variant, tile_sample *sample) {
    static const tile_shape shapes[][2] = {
        {{2, {1, 1}}, {2, {1, 1}}},       {{2, {2, 3}}, {2, {3, 4}}},
        {{2, {4, 5}}, {2, {5, 16}}},      {{2, {2, 3}}, {2, {3, 65}}},
        {{3, {2, 3, 2}}, {3, {2, 2, 5}}}, {{4, {2, 1, 2, 3}}, {4, {2, 1, 3, 2}}},
    };
    if (variant >= (int)(sizeof shapes / sizeof *shapes)) return false;
    return fill(sample, shapes[variant][0], shapes[variant][1]);
}
static bool sample_matmul(int variant, tile_sample *sample) {
    sample->build = build_matmul;
    return fill_matmul(variant, sample);
}
static bool sample_guarded_matmul(int variant, tile_sample *sample) {
    sample->build = build_guarded_matmul;
    return fill_matmul(variant, sample);
}

static const tile_op ops[OPS] = {
    [DOT] = {.name = "dot",
             .kind = TILE_OP_COOPERATIVE,
             .n_in = 2,
             .n_out = 1,
             .grad = {TILE_GRAD_FULL, TILE_GRAD_FULL},
             .math = "y = sum a * b",
             .special = "integers wrap",
             .adjoint_math = "da += dy * b; db += dy * a",
             .infer = infer_dot,
             .run = {TILE_RUNS_NUMBER(dot)},
             .adjoint = adjoint_dot,
             .sample = sample_dot},
    [MATMUL] = {.name = "matmul",
                .kind = TILE_OP_COOPERATIVE,
                .n_in = 2,
                .n_out = 1,
                .grad = {TILE_GRAD_FULL, TILE_GRAD_FULL},
                .math = "y[i, j] = sum over p of a[i, p] * b[p, j]",
                .special = "earlier dimensions are a batch; integers wrap",
                .adjoint_math = "da += dy b^T; db += a^T dy",
                .infer = infer_matmul,
                .run = {TILE_RUNS_NUMBER(matmul)},
                .adjoint = adjoint_matmul,
                .sample = sample_matmul},
    [GUARDED_MATMUL] = {.name = "guarded_matmul",
                        .kind = TILE_OP_COOPERATIVE,
                        .n_in = 2,
                        .n_out = 1,
                        .grad = {TILE_GRAD_FULL, TILE_GRAD_FULL},
                        .math = "y[i, j] = sum over p of a[i, p] * b[p, j] where a[i, p] is not 0",
                        .adjoint_math = "da += dy b^T; db += a^T dy",
                        .special = "the adjoint of matmul; derivatives are those of matmul",
                        .infer = infer_matmul,
                        .run = {TILE_RUNS_FLOAT(guarded_matmul)},
                        .adjoint = adjoint_matmul,
                        .sample = sample_guarded_matmul},
};

const tile_family tile_ops_linalg = {"linalg", OPS, ops};

tile(tile_dot)(tile a, tile b) {
    return emit(DOT, a, b);
}

tile(tile_matmul)(tile a, tile b) {
    return emit(MATMUL, a, b);
}
