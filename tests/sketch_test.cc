/* sketch_test.cc: the three programs of the sketch of the interface, as a user would write them. */
#include "tests/sketch_scatter.h"
#include "tests/tape_fixture.h"

#include <cstdio>

namespace {

TEST(Sketch, AScatterInCHasItsGradient) {
    /* L = sum y^2, y[i] = sum of w x with index i: dx[k] = 2 y[index[k]] w[k] */
    const int n = SKETCH_SCATTER_N;
    std::vector<float> x(n), w(n), dx(n, NAN);
    std::vector<int32_t> index(n);
    std::vector<double> y(8);
    for (int k = 0; k < n; k++) {
        const size_t i = static_cast<size_t>(k);
        x[i] = static_cast<float>(k % 5 - 2);
        w[i] = static_cast<float>(k % 3);
        index[i] = k % 10 - 1; /* -1 and 8 are discarded */
        if (index[i] >= 0 && index[i] < 8)
            y[static_cast<size_t>(index[i])] += static_cast<double>(x[i] * w[i]);
    }
    const std::string path = testing::TempDir() + "sketch_dx.npy";
    const sketch_scatter_data data = {x.data(), w.data(), index.data(), dx.data(), path.c_str()};
    ASSERT_EQ(TILE_OK, sketch_scatter(&data)) << tile_last_error();
    for (size_t i = 0; i < dx.size(); i++) {
        const bool inside = index[i] >= 0 && index[i] < 8;
        const double wanted =
            inside ? 2 * y[static_cast<size_t>(index[i])] * static_cast<double>(w[i]) : 0;
        EXPECT_EQ(wanted, static_cast<double>(dx[i])) << i;
    }
    tile_context *ctx = nullptr;
    tile_array *saved = nullptr;
    ASSERT_EQ(TILE_OK, tile_context_create(nullptr, &ctx));
    ASSERT_EQ(TILE_OK, tile_array_load_npy(ctx, path.c_str(), &saved)) << tile_last_error();
    std::vector<float> loaded(dx.size());
    EXPECT_EQ(TILE_OK, tile_array_read(saved, loaded.data(), loaded.size() * sizeof(float)));
    EXPECT_EQ(dx, loaded);
    tile_array_destroy(saved);
    tile_context_destroy(ctx);
    EXPECT_EQ(0, remove(path.c_str()));
}

class SketchTest : public TapeTest {
  protected:
    enum { H = 12, W = 15, TILE_H = 4, TILE_W = 8, STEPS = 7, TRACES = 3 };

    /* A step of the damped wave equation, fourth order in space; outside of the field is zero. */
    tile_kernel *wave_step() {
        return kernel("wave_step", [](tile_builder *b) {
            const tile_param before = tile_array_param(b, "before", TILE_F64, 2);
            const tile_param now = tile_array_param(b, "now", TILE_F64, 2);
            const tile_param next = tile_array_param(b, "next", TILE_F64, 2);
            const tile_param velocity = tile_array_param(b, "velocity", TILE_F64, 2);
            const tile dt = tile_real_param(b, "dt", TILE_F64),
                       h = tile_real_param(b, "h", TILE_F64);
            const tile damp = tile_real_param(b, "damp", TILE_F64);
            const tile_shape shape = TILE_SHAPE(TILE_H, TILE_W);
            const tile_offset at =
                TILE_AT(tile_block_start(b, 0, TILE_H), tile_block_start(b, 1, TILE_W));
            const tile q = tile_load(before, shape, at), c = tile_load(now, shape, at);
            const tile n = tile_load(now, shape, TILE_SHIFT(at, -1, 0));
            const tile s = tile_load(now, shape, TILE_SHIFT(at, 1, 0));
            const tile w = tile_load(now, shape, TILE_SHIFT(at, 0, -1));
            const tile e = tile_load(now, shape, TILE_SHIFT(at, 0, 1));
            const tile nn = tile_load(now, shape, TILE_SHIFT(at, -2, 0));
            const tile ss = tile_load(now, shape, TILE_SHIFT(at, 2, 0));
            const tile ww = tile_load(now, shape, TILE_SHIFT(at, 0, -2));
            const tile ee = tile_load(now, shape, TILE_SHIFT(at, 0, 2));
            const tile v = tile_load(velocity, shape, at);
            const tile lap =
                tile_expr("(-60*c + 16*(n + s + e + w) - (nn + ss + ee + ww)) / (12*h*h)", c, n, s,
                          e, w, nn, ss, ee, ww, h);
            const tile k = tile_expr("v*v*dt*dt", v, dt);
            tile_store(next, tile_expr("damp * (2*c - damp*q + k*lap)", damp, c, q, k, lap), at);
        });
    }
    /* p[source] += wavelet[t] */
    tile_kernel *inject() {
        return kernel("inject", [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "p", TILE_F64, 2);
            const tile_param wavelet = tile_array_param(b, "wavelet", TILE_F64, 1);
            const tile t = tile_int_param(b, "t");
            tile_atomic_add(p, tile_load(wavelet, TILE_SCALAR, TILE_AT(t)),
                            TILE_AT(tile_int(b, 3), tile_int(b, 5)));
        });
    }
    /* traces[t, :] = p at the receivers' columns of row 8 */
    tile_kernel *receive() {
        return kernel("receive", [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "p", TILE_F64, 2);
            const tile_param columns = tile_array_param(b, "columns", TILE_I32, 1);
            const tile_param traces = tile_array_param(b, "traces", TILE_F64, 2);
            const tile t = tile_int_param(b, "t"), zero = tile_int(b, 0);
            const tile at = tile_load(columns, TILE_SHAPE(TRACES), TILE_AT_ZERO);
            const tile row =
                tile_load_indexed(p, at, TILE_SHAPE(1, TRACES), TILE_AT(tile_int(b, 8), zero), 1);
            tile_store(traces, row, TILE_AT(t, zero));
        });
    }
    tile_array *field(double low, double high) {
        Reals x(H * W);
        for (size_t i = 0; i < x.size(); i++)
            x[i] = low + (high - low) * (0.5 + 0.5 * std::sin(static_cast<double>(i * i)));
        return active(TILE_SHAPE(H, W), x);
    }
};

TEST_F(SketchTest, CallsAndFormulasMakeTheSameProgram) {
    const auto text = [](tile_kernel *k) {
        std::string all;
        char line[256];
        FILE *f = tmpfile();
        EXPECT_NE(nullptr, f);
        EXPECT_EQ(TILE_OK, tile_kernel_print(k, f));
        rewind(f);
        while (fgets(line, sizeof line, f)) all += line;
        fclose(f);
        return all;
    };
    tile_kernel *calls = map("same", [](tile a) { return tile_mul(a, tile_add(a, a)); });
    tile_kernel *formula = map("same", [](tile a) { return tile_expr("a * (a + a)", a); });
    EXPECT_EQ(text(calls), text(formula));
}

TEST_F(SketchTest, AFormulaOverRuntimeScalarsReadsAsItsEquation) {
    /* rank-0 integers too: y[i*rows + 3] = i*rows + 3 */
    tile_kernel *k = kernel("place", [](tile_builder *b) {
        const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
        const tile rows = tile_int_param(b, "rows"), i = tile_block_index(b, 0);
        const tile at = tile_expr("i*rows + 3", i, rows);
        tile_store(y, tile_cast(at, TILE_F64), TILE_AT(at));
    });
    tile_array *y = zeros(8);
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(2), TILE_ARGS(y, 4))) << tile_last_error();
    EXPECT_EQ(Reals({0, 0, 0, 3, 0, 0, 0, 7}), read(y));
}

TEST_F(SketchTest, AWaveOverThreeBuffersHasItsGradient) {
    tile_array *p[3], *velocity = field(1.5, 2.5), *wavelet = active(Reals{0, 1, 3, 1, -2, 0.5, 0});
    for (tile_array *&a : p) a = reals(TILE_SHAPE(H, W), Reals(H * W));
    tile_array *columns = integers({2, 7, 11}), *loss = zeros(1);
    tile_array *traces = reals(TILE_SHAPE(STEPS, TRACES), Reals(STEPS * TRACES));
    tile_array *observed = reals(TILE_SHAPE(STEPS, TRACES), Reals(STEPS * TRACES, 0.01));
    tile_kernel *step = wave_step(), *source = inject(), *receivers = receive();
    const tile_grid grid = TILE_GRID(H / TILE_H, (W + TILE_W - 1) / TILE_W);
    const double dt = 0.3, h = 1.0, damp = 0.99;
    for (int t = 0; t < STEPS; t++) {
        tile_array *next = p[(t + 2) % 3];
        ASSERT_EQ(TILE_OK,
                  tile_launch(record, step, grid,
                              TILE_ARGS(p[t % 3], p[(t + 1) % 3], next, velocity, dt, h, damp)))
            << tile_last_error();
        ASSERT_EQ(TILE_OK, tile_launch(record, source, TILE_GRID(1), TILE_ARGS(next, wavelet, t)));
        ASSERT_EQ(TILE_OK, tile_launch(record, receivers, TILE_GRID(1),
                                       TILE_ARGS(next, columns, traces, t)));
    } /* three buffers, overwritten all the time: gradients stay right */
    ASSERT_EQ(TILE_OK, tape_misfit(record, traces, observed, loss));
    backward(loss);
    double norm = 0;
    for (double d : grad(velocity)) norm += d * d;
    EXPECT_GT(norm, 1e-12);

    tape_check_report report;
    ASSERT_EQ(TILE_OK, tape_gradcheck(record, loss, TAPE_CHECK_ALL, &report)) << tile_last_error();
    EXPECT_TRUE(report.passed);
    EXPECT_EQ(2, report.rows);
    EXPECT_NEAR(2, report.taylor_slope, 0.1);
    if (!report.passed) tape_check_print(&report, stdout);
}

} // namespace
