/* program_gmm.cc: the Gaussian mixture objective of ADBench.
 *
 *   z = x[i] - means[c], q = exp(icf[c, ..d]), y = q z + L z
 *   inner[c] = alphas[c] + sum icf[c, ..d] - |y|^2/2, lse[i] = log sum_c exp(inner[c])
 *   loss = -n d/2 log(2 pi) + sum lse - n log sum exp(alphas) + prior
 *
 * source: F. Srajer, Z. Kukelova, A. Fitzgibbon, A benchmark of selected algorithmic
 * differentiation tools on some problems in computer vision and machine learning, 2018. */
#include <cmath>

#include "tests/golden_program.h"

namespace golden {

namespace {

enum { SIZE = 8 };

/* log sum exp over the first dimension. */
tile log_sum_exp(tile inner) {
    const tile top = tile_stop_gradient(tile_reduce_max(inner, TILE_AXES(0)));
    const tile part = tile_sum(tile_expr("exp(inner - top)", inner, top), TILE_AXES(0));
    return tile_expr("top + log(part)", top, part);
}

/* The strictly lower triangular matrices: entry (row, column) is at index lower[row * d + column]
 * of the component's row of icf; -1, which is outside, gives 0. */
tile triangles(tile_builder *b, tile_param icf, int64_t k, int64_t d) {
    const tile_param lower = tile_array_param(b, "lower", TILE_I32, 1);
    const tile at = tile_load(lower, TILE_SHAPE(d * d), TILE_AT_ZERO);
    return tile_reshape(tile_load_indexed(icf, at, TILE_SHAPE(k, d * d), TILE_AT_ZERO, 1),
                        TILE_SHAPE(k, d, d));
}

void build_points(tile_builder *b, int64_t k, int64_t d) {
    const tile_param alphas = tile_array_param(b, "alphas", TILE_F64, 1);
    const tile_param means = tile_array_param(b, "means", TILE_F64, 2);
    const tile_param icf = tile_array_param(b, "icf", TILE_F64, 2);
    const tile_param points = tile_array_param(b, "x", TILE_F64, 2);
    const tile_param out = tile_array_param(b, "lse", TILE_F64, 1);
    const tile L = triangles(b, icf, k, d);
    const tile first = tile_block_start(b, 0, SIZE);
    const tile x =
        tile_reshape(tile_load(points, TILE_SHAPE(SIZE, d), TILE_AT(first, tile_int(b, 0))),
                     TILE_SHAPE(1, SIZE, d));
    const tile mean =
        tile_reshape(tile_load(means, TILE_SHAPE(k, d), TILE_AT_ZERO), TILE_SHAPE(k, 1, d));
    const tile log_q = tile_load(icf, TILE_SHAPE(k, d), TILE_AT_ZERO);
    const tile q = tile_reshape(tile_exp(log_q), TILE_SHAPE(k, 1, d));
    const tile z = tile_sub(x, mean);
    const tile Lz = tile_matmul(z, tile_transpose(L));
    const tile y = tile_expr("q*z + Lz", q, z, Lz);
    const tile square = tile_sum(tile_mul(y, y), TILE_AXES(2));
    const tile a = tile_reshape(tile_load(alphas, TILE_SHAPE(k), TILE_AT_ZERO), TILE_SHAPE(k, 1));
    const tile scale = tile_reshape(tile_sum(log_q, TILE_AXES(1)), TILE_SHAPE(k, 1));
    tile_store(out, log_sum_exp(tile_expr("a + scale - square/2", a, scale, square)),
               TILE_AT(first));
}

void build_total(tile_builder *b, int64_t n, int64_t k, int64_t d) {
    const tile_param alphas = tile_array_param(b, "alphas", TILE_F64, 1);
    const tile_param icf = tile_array_param(b, "icf", TILE_F64, 2);
    const tile_param lse = tile_array_param(b, "lse", TILE_F64, 1);
    const tile_param loss = tile_array_param(b, "loss", TILE_F64, 1);
    const tile L = triangles(b, icf, k, d);
    const tile gamma = tile_real_param(b, "gamma", TILE_F64), m = tile_real_param(b, "m", TILE_F64);
    const tile constant = tile_real_param(b, "constant", TILE_F64);
    const tile count = tile_real(b, TILE_F64, static_cast<double>(n));
    const tile fit = tile_sum(tile_load(lse, TILE_SHAPE(n), TILE_AT_ZERO), TILE_ALL_AXES);
    const tile mass = log_sum_exp(tile_load(alphas, TILE_SHAPE(k), TILE_AT_ZERO));
    const tile log_q = tile_load(icf, TILE_SHAPE(k, d), TILE_AT_ZERO);
    const tile squares = tile_add(tile_sum(tile_expr("exp(2*log_q)", log_q), TILE_ALL_AXES),
                                  tile_sum(tile_mul(L, L), TILE_ALL_AXES));
    const tile logs = tile_sum(log_q, TILE_ALL_AXES);
    const tile prior = tile_expr("gamma*gamma/2 * squares - m*logs", gamma, squares, m, logs);
    tile_store(loss,
               tile_expr("constant + fit - count*mass + prior", constant, fit, count, mass, prior),
               TILE_AT_ZERO);
}

/* Column by column below the diagonal, after the d logarithms. */
tile_array *lower_indices(Simulation *s, int64_t d) {
    std::vector<int32_t> at(static_cast<size_t>(d * d), -1);
    int32_t next = static_cast<int32_t>(d);
    for (int64_t column = 0; column < d; column++)
        for (int64_t row = column + 1; row < d; row++)
            at[static_cast<size_t>(row * d + column)] = next++;
    tile_array *lower = s->bench.zeros(TILE_I32, {d * d});
    must(tile_array_write(lower, at.data(), at.size() * sizeof at[0]));
    return lower;
}

/* -n d/2 log(2 pi) - k C. */
double constant_of(int64_t n, int64_t k, int64_t d, double gamma, double m) {
    const double pi = std::acos(-1.0), D = static_cast<double>(d), N = D + m + 1;
    double log_g = D * (D - 1) / 4 * std::log(pi);
    for (int64_t j = 1; j <= d; j++) log_g += std::lgamma((N + 1 - static_cast<double>(j)) / 2);
    const double C = N * D * std::log(gamma / std::sqrt(2.0)) - log_g;
    return -static_cast<double>(n) * D / 2 * std::log(2 * pi) - static_cast<double>(k) * C;
}

} // namespace

void simulate_gmm(Simulation *s) {
    const int64_t n = s->extent("x", 0), d = s->extent("x", 1), k = s->count("alphas");
    const double gamma = s->c.real("gamma"), m = s->c.real("m");
    tile_kernel *points =
        s->bench.kernel("points", [=](tile_builder *b) { build_points(b, k, d); });
    tile_kernel *total =
        s->bench.kernel("total", [=](tile_builder *b) { build_total(b, n, k, d); });
    tile_array *lower = lower_indices(s, d);
    s->out = s->zeros({n});
    s->loss = s->zeros({1});
    s->launch(points, TILE_GRID(blocks(n, SIZE)),
              TILE_ARGS(s->input("alphas"), s->input("means"), s->input("icf"), s->input("x"),
                        s->out, lower));
    s->launch(total, TILE_GRID(1),
              TILE_ARGS(s->input("alphas"), s->input("icf"), s->out, s->loss, lower, gamma, m,
                        constant_of(n, k, d, gamma, m)));
}

} // namespace golden
