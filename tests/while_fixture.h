/* while_fixture.h: kernels k(x, y) on float64 arrays, their gradients against differences. */
#ifndef TILE_TESTS_WHILE_FIXTURE_H
#define TILE_TESTS_WHILE_FIXTURE_H

#include "tests/tape_fixture.h"

class DifferenceTest : public TapeTest {
  protected:
    explicit DifferenceTest(int threads = 1) : TapeTest(threads) {}

    /* What y is afterwards; it begins as start. */
    Reals outcome(tile_kernel *k, tile_grid grid, const Reals &x, const Reals &start) {
        tile_array *px = reals(x), *py = reals(start);
        EXPECT_EQ(TILE_OK, tile_launch(nullptr, k, grid, TILE_ARGS(px, py))) << tile_last_error();
        return read(py);
    }
    static double weight(size_t i) {
        return 1 + 0.25 * static_cast<double>(i % 7);
    }
    /* The sum of y's elements, each with its weight. */
    double loss(tile_kernel *k, tile_grid grid, const Reals &x, const Reals &start) {
        const Reals y = outcome(k, grid, x, start);
        double sum = 0;
        for (size_t i = 0; i < y.size(); i++) sum += weight(i) * y[i];
        return sum;
    }
    /* Its gradient by x, on a tape of its own. */
    Reals gradient(tile_kernel *k, tile_grid grid, const Reals &x, const Reals &start) {
        tape *t = new_tape();
        Reals w;
        for (size_t i = 0; i < start.size(); i++) w.push_back(weight(i));
        tile_array *px = active(x), *py = reals(start), *seed = reals(w);
        EXPECT_EQ(TILE_OK, tile_launch(t, k, grid, TILE_ARGS(px, py))) << tile_last_error();
        EXPECT_EQ(TILE_OK, tape_backward_seeds(t, 1, &py, &seed)) << tile_last_error();
        return grad(px);
    }
    /* Central differences; the programs here are smooth where they are asked. */
    void expect_gradient(tile_kernel *k, tile_grid grid, const Reals &x, const Reals &start) {
        const Reals g = gradient(k, grid, x, start);
        bool some = false;
        for (size_t i = 0; i < x.size(); i++) {
            const double h = 1e-5;
            Reals up = x, down = x;
            up[i] += h;
            down[i] -= h;
            const double slope = (loss(k, grid, up, start) - loss(k, grid, down, start)) / (2 * h);
            EXPECT_NEAR(slope, g[i], 1e-7 * (1 + std::fabs(slope))) << "x[" << i << "]";
            some = some || std::fabs(slope) > 1e-3;
        }
        EXPECT_TRUE(some) << "the gradient is never seen";
    }
    std::string text_of(tile_kernel *k, bool adjoint = false) {
        char *text = nullptr;
        size_t n = 0;
        FILE *out = open_memstream(&text, &n);
        EXPECT_EQ(TILE_OK, adjoint ? tile_kernel_print_adjoint(k, out) : tile_kernel_print(k, out));
        fclose(out);
        const std::string all(text, n);
        free(text);
        return all;
    }
    static size_t count_in(const std::string &text, const std::string &part) {
        size_t n = 0;
        for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
            n++;
        return n;
    }
    static tile_param x_of(tile_builder *b) {
        return tile_array_param(b, "x", TILE_F64, 1);
    }
    static tile_param y_of(tile_builder *b) {
        return tile_array_param(b, "y", TILE_F64, 1);
    }

    /* What a kernel that builds wrongly ends with. */
    void expect_refused(tile_status wanted, const char *part, const Build &build) {
        tile_builder *b = tile_kernel_begin(ctx, "refused");
        build(b);
        tile_kernel *k = nullptr;
        expect_error(wanted, part, tile_kernel_end(b, &k));
        EXPECT_NE(nullptr, strstr(tile_last_error(), "_test.cc:")) << tile_last_error();
    }
};

#endif
