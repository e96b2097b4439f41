/* wave_burgers_test.cc: wave and Burgers steps as tiles against those written by hand. */
#include <tiletape.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/burgers_hand.h"
#include "benchmarks/burgers_kernel.h"
#include "benchmarks/wave_hand.h"
#include "benchmarks/wave_kernel.h"
#include "gtest/gtest.h"

namespace {

constexpr int kBuffers = 3;
constexpr double kCourant = 0.5, kA = 0.2, kB = 0.1;

#define MUST(call) ASSERT_EQ(call, TILE_OK) << tile_last_error()

/* Rows, columns, tile rows, tile columns, steps. */
struct Case {
    int64_t rows, cols, tile_rows, tile_cols;
    int steps;
};

template <typename T> tile_dtype DtypeOf() {
    return sizeof(T) == 8 ? TILE_F64 : TILE_F32;
}

template <typename T> std::vector<T> Noise(int64_t count, unsigned seed, double low, double high) {
    std::mt19937_64 engine(seed);
    std::vector<T> x(static_cast<size_t>(count));
    for (T &e : x)
        e = static_cast<T>(low + (high - low) * static_cast<double>(engine() >> 11) * 0x1p-53);
    return x;
}

/* A context with arrays of one shape; frees all of it in order. */
template <typename T> class Arrays {
  public:
    Arrays(const Case &c, int threads, tile_executor executor) : case_(c) {
        tile_context_options options = {};
        options.threads = threads;
        options.executor = executor;
        EXPECT_EQ(tile_context_create(&options, &ctx), TILE_OK) << tile_last_error();
        EXPECT_EQ(tape_create(ctx, nullptr, &record), TILE_OK) << tile_last_error();
    }
    ~Arrays() {
        tape_destroy(record);
        for (tile_array *a : all_) tile_array_destroy(a);
        tile_kernel_destroy(kernel);
        tile_context_destroy(ctx);
    }
    tile_array *New(const std::vector<T> &values, bool grad) {
        tile_array *a = nullptr;
        EXPECT_EQ(tile_array_create(ctx, DtypeOf<T>(), TILE_SHAPE(case_.rows, case_.cols), &a),
                  TILE_OK);
        if (!values.empty()) {
            EXPECT_EQ(tile_array_write(a, values.data(), values.size() * sizeof(T)), TILE_OK);
        }
        if (grad) {
            EXPECT_EQ(tile_array_request_grad(a), TILE_OK);
        }
        all_.push_back(a);
        return a;
    }
    std::vector<T> Read(tile_array *a) {
        std::vector<T> x(static_cast<size_t>(case_.rows * case_.cols));
        EXPECT_EQ(tile_array_read(a, x.data(), x.size() * sizeof(T)), TILE_OK) << tile_last_error();
        return x;
    }
    tile_grid Grid() const {
        return TILE_GRID((case_.rows + case_.tile_rows - 1) / case_.tile_rows,
                         (case_.cols + case_.tile_cols - 1) / case_.tile_cols);
    }
    tile_context *ctx = nullptr;
    tape *record = nullptr;
    tile_kernel *kernel = nullptr;

  private:
    Case case_;
    std::vector<tile_array *> all_;
};

/* A field in the layout of hand_grid.h. */
class Field {
  public:
    Field(const hand_grid &g, const std::vector<double> &dense)
        : grid_(g), memory_(static_cast<size_t>(hand_grid_count(&g))) {
        for (int64_t i = 0; !dense.empty() && i < g.rows; i++)
            for (int64_t j = 0; j < g.cols; j++)
                at()[i * g.pitch + j] = dense[static_cast<size_t>(i * g.cols + j)];
    }
    double *at() {
        return memory_.data() + hand_grid_origin(&grid_);
    }
    std::vector<double> Dense() {
        std::vector<double> dense;
        for (int64_t i = 0; i < grid_.rows; i++)
            dense.insert(dense.end(), at() + i * grid_.pitch, at() + i * grid_.pitch + grid_.cols);
        return dense;
    }

  private:
    hand_grid grid_;
    std::vector<double> memory_;
};

/* The largest difference relative to the largest element of want, or NaN. */
double Difference(const std::vector<double> &got, const std::vector<double> &want) {
    double error = 0, largest = 0;
    for (size_t i = 0; i < want.size(); i++) {
        const double e = std::fabs(got[i] - want[i]);
        if (!(e <= error) && !std::isnan(error)) error = e;
        largest = std::fmax(largest, std::fabs(want[i]));
    }
    EXPECT_GT(largest, 0) << "nothing to compare with";
    return error / largest;
}

/* What a run gives: the last state, then gradients. */
template <typename T> using Results = std::vector<std::vector<T>>;

#define EXPECT_NEAR_RESULTS(got, want)                                       \
    do {                                                                     \
        const auto &g_ = (got);                                              \
        const auto &w_ = (want);                                             \
        ASSERT_EQ(g_.size(), w_.size());                                     \
        for (size_t k_ = 0; k_ < w_.size(); k_++)                            \
            EXPECT_LE(Difference(g_[k_], w_[k_]), 1e-12) << "result " << k_; \
    } while (0)

template <typename T> struct WaveInput {
    explicit WaveInput(const Case &c) {
        const int64_t n = c.rows * c.cols;
        first[0] = Noise<T>(n, 1, -1, 1);
        first[1] = Noise<T>(n, 2, -1, 1);
        v = Noise<T>(n, 3, 0.6, 1);
        s = Noise<T>(n, 4, 0.8, 1);
        seed = Noise<T>(n, 5, -1, 1);
    }
    std::vector<T> first[2], v, s, seed;
};

/* The last state, the gradients by both first states and by v. */
template <typename T>
void WaveByTiles(const Case &c, int threads, Results<T> *out,
                 tile_executor executor = TILE_EXECUTOR_AUTO) {
    const WaveInput<T> in(c);
    Arrays<T> arrays(c, threads, executor);
    MUST(wave_kernel_build(arrays.ctx, DtypeOf<T>(), c.tile_rows, c.tile_cols, &arrays.kernel));
    tile_array *p[kBuffers] = {arrays.New(in.first[0], true), arrays.New(in.first[1], true),
                               arrays.New({}, false)};
    tile_array *v = arrays.New(in.v, true), *s = arrays.New(in.s, false);
    tile_array *seed = arrays.New(in.seed, false);
    for (int t = 0; t < c.steps; t++)
        MUST(tile_launch(arrays.record, arrays.kernel, arrays.Grid(),
                         TILE_ARGS(p[t % kBuffers], p[(t + 1) % kBuffers], v, s,
                                   p[(t + 2) % kBuffers], kCourant)));
    tile_array *last = p[(c.steps + 1) % kBuffers];
    MUST(tape_backward_seeds(arrays.record, 1, &last, &seed));
    *out = {arrays.Read(last), arrays.Read(tile_array_grad(p[0])),
            arrays.Read(tile_array_grad(p[1])), arrays.Read(tile_array_grad(v))};
}

Results<double> WaveByHand(const Case &c) {
    const WaveInput<double> in(c);
    const hand_grid g = hand_grid_of(c.rows, c.cols, 1);
    std::vector<Field> p = {Field(g, in.first[0]), Field(g, in.first[1])};
    Field v(g, in.v), s(g, in.s), seed(g, in.seed), dv(g, {});
    std::vector<Field> d(kBuffers, Field(g, {}));
    std::vector<double> ring(static_cast<size_t>(wave_hand_ring(&g)));
    for (int t = 0; t < c.steps; t++) {
        p.emplace_back(g, std::vector<double>());
        const size_t at = static_cast<size_t>(t);
        wave_hand_step_f64(&g, kCourant, p[at].at(), p[at + 1].at(), v.at(), s.at(),
                           p[at + 2].at());
    }
    for (int t = c.steps - 1; t >= 0; t--) {
        const bool last = t == c.steps - 1;
        const size_t to = static_cast<size_t>(t);
        wave_hand_adjoint_f64(&g, kCourant, p[to + 1].at(), v.at(), s.at(),
                              last ? seed.at() : d[(to + 2) % kBuffers].at(), d[to % kBuffers].at(),
                              d[(to + 1) % kBuffers].at(), !last, dv.at(), ring.data());
    }
    return {p.back().Dense(), d[0].Dense(), d[1].Dense(), dv.Dense()};
}

template <typename T> struct BurgersInput {
    explicit BurgersInput(const Case &c) {
        for (unsigned k = 0; k < 2; k++) {
            first[k] = Noise<T>(c.rows * c.cols, 1 + k, -0.2, 0.8);
            seed[k] = Noise<T>(c.rows * c.cols, 3 + k, -1, 1);
        }
    }
    std::vector<T> first[2], seed[2];
};

/* The last state and the gradient by the first, two components each. */
template <typename T>
void BurgersByTiles(const Case &c, int threads, Results<T> *out,
                    tile_executor executor = TILE_EXECUTOR_AUTO) {
    const BurgersInput<T> in(c);
    Arrays<T> arrays(c, threads, executor);
    MUST(burgers_kernel_build(arrays.ctx, DtypeOf<T>(), c.tile_rows, c.tile_cols, &arrays.kernel));
    tile_array *state[kBuffers][2], *seed[2];
    for (int k = 0; k < 2; k++) {
        state[0][k] = arrays.New(in.first[k], true);
        for (int i = 1; i < kBuffers; i++) state[i][k] = arrays.New({}, false);
        seed[k] = arrays.New(in.seed[k], false);
    }
    for (int t = 0; t < c.steps; t++) {
        tile_array **from = state[t % kBuffers], **to = state[(t + 1) % kBuffers];
        MUST(tile_launch(arrays.record, arrays.kernel, arrays.Grid(),
                         TILE_ARGS(from[0], from[1], to[0], to[1], kA, kB)));
    }
    tile_array **last = state[c.steps % kBuffers];
    MUST(tape_backward_seeds(arrays.record, 2, last, seed));
    *out = {arrays.Read(last[0]), arrays.Read(last[1]), arrays.Read(tile_array_grad(state[0][0])),
            arrays.Read(tile_array_grad(state[0][1]))};
}

Results<double> BurgersByHand(const Case &c) {
    const BurgersInput<double> in(c);
    const hand_grid g = hand_grid_of(c.rows, c.cols, 1);
    std::vector<Field> u = {Field(g, in.first[0])}, v = {Field(g, in.first[1])};
    std::vector<Field> du = {Field(g, in.seed[0])}, dv = {Field(g, in.seed[1])};
    for (int t = 0; t < c.steps; t++) {
        const size_t at = static_cast<size_t>(t);
        u.emplace_back(g, std::vector<double>());
        v.emplace_back(g, std::vector<double>());
        burgers_hand_step_f64(&g, kA, kB, u[at].at(), v[at].at(), u[at + 1].at(), v[at + 1].at());
    }
    for (int t = c.steps - 1; t >= 0; t--) {
        const size_t at = static_cast<size_t>(t), from = du.size() - 1;
        du.emplace_back(g, std::vector<double>());
        dv.emplace_back(g, std::vector<double>());
        burgers_hand_adjoint_f64(&g, kA, kB, u[at].at(), v[at].at(), du[from].at(), dv[from].at(),
                                 du[from + 1].at(), dv[from + 1].at());
    }
    return {u.back().Dense(), v.back().Dense(), du.back().Dense(), dv.back().Dense()};
}

/* Smaller than a tile, exact tiles, one cell over, rows and columns of blocks, prime sizes. */
const Case kCases[] = {{1, 1, 8, 256, 3},    {2, 3, 8, 256, 4},     {3, 5, 1, 512, 4},
                       {8, 256, 8, 256, 4},  {9, 257, 8, 256, 5},   {31, 37, 8, 16, 6},
                       {37, 600, 8, 256, 6}, {16, 1024, 1, 512, 4}, {64, 101, 1, 512, 6}};

class HandWritten : public testing::TestWithParam<Case> {};

TEST_P(HandWritten, WaveStepsAndTheirGradientsAreThoseOfTiles) {
    Results<double> ours;
    WaveByTiles(GetParam(), 2, &ours);
    EXPECT_NEAR_RESULTS(ours, WaveByHand(GetParam()));
}

TEST_P(HandWritten, BurgersStepsAndTheirGradientsAreThoseOfTiles) {
    Results<double> ours;
    BurgersByTiles(GetParam(), 2, &ours);
    EXPECT_NEAR_RESULTS(ours, BurgersByHand(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Shapes, HandWritten, testing::ValuesIn(kCases), [](const auto &info) {
    const Case &c = info.param;
    std::ostringstream name;
    name << c.rows << "x" << c.cols << "_in_" << c.tile_rows << "x" << c.tile_cols;
    return name.str();
});

/* The step is linear in p: <seed, step(p)> = <adjoint(seed), p>. */
TEST(HandWrittenAdjoint, OfWaveIsTheTransposeOfTheStep) {
    const Case c = {23, 41, 8, 256, 1};
    const WaveInput<double> in(c);
    const hand_grid g = hand_grid_of(c.rows, c.cols, 1);
    const std::vector<double> zero(in.v.size());
    Field p(g, in.first[1]), none(g, zero), v(g, in.v), s(g, in.s), next(g, {}), seed(g, in.seed);
    Field dprev(g, {}), dp(g, {});
    std::vector<double> ring(static_cast<size_t>(wave_hand_ring(&g)));
    wave_hand_step_f64(&g, kCourant, none.at(), p.at(), v.at(), s.at(), next.at());
    wave_hand_adjoint_f64(&g, kCourant, nullptr, v.at(), s.at(), seed.at(), dprev.at(), dp.at(),
                          false, nullptr, ring.data());
    double forward = 0, backward = 0, size = 0;
    const std::vector<double> y = next.Dense(), x = dp.Dense();
    for (size_t i = 0; i < y.size(); i++) {
        forward += y[i] * in.seed[i];
        backward += x[i] * in.first[1][i];
        size += std::fabs(y[i] * in.seed[i]);
    }
    EXPECT_NEAR(forward, backward, 1e-13 * size);
}

template <typename T> bool SameBits(const Results<T> &a, const Results<T> &b) {
    if (a.size() != b.size()) return false;
    for (size_t k = 0; k < a.size(); k++)
        if (a[k].size() != b[k].size() ||
            std::memcmp(a[k].data(), b[k].data(), a[k].size() * sizeof(T)) != 0)
            return false;
    return true;
}

template <typename T> using ByTiles = void (*)(const Case &, int, Results<T> *, tile_executor);

/* Against the interpreter on one thread. */
template <typename T>
void ExpectSameBits(ByTiles<T> run, const std::vector<int> &threads, tile_executor executor) {
    for (const Case &c :
         {Case{61, 301, 8, 64, 4}, Case{300, 530, 8, 256, 4}, Case{200, 700, 1, 512, 4}}) {
        Results<T> one;
        run(c, 1, &one, TILE_EXECUTOR_INTERPRETER);
        for (int n : threads) {
            Results<T> other;
            run(c, n, &other, executor);
            EXPECT_TRUE(SameBits(other, one)) << n << " threads, " << c.rows << "x" << c.cols;
        }
    }
}

TEST(Threads, DoNotChangeTheBitsOfWaveOrItsGradients) {
    ExpectSameBits<float>(WaveByTiles<float>, {2, 3, 8}, TILE_EXECUTOR_INTERPRETER);
    ExpectSameBits<double>(WaveByTiles<double>, {2, 3, 8}, TILE_EXECUTOR_INTERPRETER);
}

TEST(Threads, DoNotChangeTheBitsOfBurgersOrItsGradients) {
    ExpectSameBits<float>(BurgersByTiles<float>, {2, 3, 8}, TILE_EXECUTOR_INTERPRETER);
    ExpectSameBits<double>(BurgersByTiles<double>, {2, 3, 8}, TILE_EXECUTOR_INTERPRETER);
}

TEST(Native, HasTheBitsOfTheInterpreterOnWaveBurgersAndTheirGradients) {
    const char *scratch = getenv("TEST_TMPDIR");
    setenv("XDG_CACHE_HOME", scratch ? scratch : "/tmp", 1);
    ExpectSameBits<float>(WaveByTiles<float>, {1, 2, 3}, TILE_EXECUTOR_NATIVE);
    ExpectSameBits<double>(WaveByTiles<double>, {1, 2}, TILE_EXECUTOR_NATIVE);
    ExpectSameBits<float>(BurgersByTiles<float>, {1, 2, 3}, TILE_EXECUTOR_NATIVE);
    ExpectSameBits<double>(BurgersByTiles<double>, {1, 2}, TILE_EXECUTOR_NATIVE);
}

using Build = tile_status (*)(tile_context *, tile_dtype, int64_t, int64_t, tile_kernel **);

/* The text of a kernel's adjoint. */
void AdjointText(Build build, std::string *text) {
    tile_context *ctx;
    tile_kernel *kernel;
    MUST(tile_context_create(nullptr, &ctx));
    MUST(build(ctx, TILE_F32, 8, 256, &kernel));
    char *memory = nullptr;
    size_t size = 0;
    FILE *out = open_memstream(&memory, &size);
    MUST(tile_kernel_print_adjoint(kernel, out));
    fclose(out);
    *text = std::string(memory, size);
    free(memory);
    tile_kernel_destroy(kernel);
    tile_context_destroy(ctx);
}

size_t Count(const std::string &text, const std::string &what) {
    size_t n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) n++;
    return n;
}

TEST(AdjointOfWave, IsAGatherThatStoresEachGradientOnce) {
    std::string text;
    AdjointText(wave_kernel_build, &text);
    EXPECT_EQ(text.rfind("# gather\n", 0), 0u) << text;
    EXPECT_EQ(Count(text, "# gather"), 1u) << text;
    EXPECT_EQ(Count(text, "# scatter"), 0u) << text;
    EXPECT_EQ(Count(text, "atomic_add"), 0u) << text;
    for (const char *gradient : {"store dprev[", "store dp[", "store dv[", "store ds["})
        EXPECT_EQ(Count(text, gradient), 1u) << gradient << "\n" << text;
}

TEST(AdjointOfBurgers, IsAGatherThatStoresEachGradientOnce) {
    std::string text;
    AdjointText(burgers_kernel_build, &text);
    EXPECT_EQ(text.rfind("# gather\n", 0), 0u) << text;
    EXPECT_EQ(Count(text, "# gather"), 1u) << text;
    EXPECT_EQ(Count(text, "# scatter"), 0u) << text;
    EXPECT_EQ(Count(text, "atomic_add"), 0u) << text;
    EXPECT_EQ(Count(text, "store du["), 1u) << text;
    EXPECT_EQ(Count(text, "store dv["), 1u) << text;
}

TEST(AdjointOfALinearStencil, LoadsNoPrimalArray) {
    std::string text;
    AdjointText(wave_kernel_build_smooth, &text);
    EXPECT_EQ(Count(text, "store dp["), 1u) << text;
    EXPECT_EQ(Count(text, "atomic_add"), 0u) << text;
    EXPECT_GT(Count(text, "load dnext["), 0u) << text;
    EXPECT_EQ(Count(text, "load "), Count(text, "load dnext[")) << text;
}

} // namespace
