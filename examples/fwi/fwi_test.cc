/* fwi_test.cc: the wave operator and the gradient of examples/fwi, and what its program refuses. */
#include "examples/fwi/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "examples/fwi/fwi_options.h"
#include "examples/fwi/ground.h"

namespace {

using values = std::vector<double>;

/* A small survey that keeps its wave inside for a while and then lets it into the sponge. */
survey small_survey(bool free_surface) {
    survey s = {};
    s.nz = 17;
    s.nx = 23;
    s.spacing = 20;
    s.side = 6;
    s.top = free_surface ? 0 : 6;
    s.free_surface = free_surface;
    s.row = 2;
    s.shots = 2;
    s.steps = 90;
    s.dt = 0.004;
    s.frequency = 6;
    return s;
}

values random_values(int64_t count, double low, double high, unsigned seed) {
    std::mt19937_64 engine(seed);
    values v(static_cast<size_t>(count));
    for (double &x : v) x = low + (high - low) * static_cast<double>(engine() >> 11) * 0x1p-53;
    return v;
}

double dot(const values &a, const values &b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); i++) sum += a[i] * b[i];
    return sum;
}

values read(tile_array *array) {
    values v(static_cast<size_t>(tile_array_count(array)));
    array_read(array, v.data());
    return v;
}

/* A context and a model of a survey, with the velocity given. */
struct simulation {
    survey s;
    tile_context *ctx = nullptr;
    wave_model m;

    simulation(const survey &like, tile_dtype dtype, int threads = 2) : s(like) {
        tile_context_options options = {};
        options.threads = threads;
        must(tile_context_create(&options, &ctx));
        model_create(&m, ctx, dtype, &s);
    }
    simulation(const simulation &) = delete;
    ~simulation() {
        model_destroy(&m);
        tile_context_destroy(ctx);
    }
    void set_velocity(const values &v) {
        array_write(m.velocity, v.data());
    }
    int64_t cells() const {
        return s.nz * s.nx;
    }
};

/* traces = J (wavelet, pressure before, pressure now) is linear: <J v, w> = <v, J' w>. */
class WaveOperator : public testing::TestWithParam<bool> {};

TEST_P(WaveOperator, AdjointPassesTheDotProductTest) {
    simulation sim(small_survey(GetParam()), TILE_F64);
    wave_model &m = sim.m;
    sim.set_velocity(random_values(sim.cells(), 1500, 2500, 1));
    tile_array *input[] = {m.wavelet, m.pressure[0], m.pressure[1]};
    values v[3];
    for (unsigned i = 0; i < 3; i++) {
        must(tile_array_request_grad(input[i]));
        v[i] = random_values(tile_array_count(input[i]), -1, 1, 2 + i);
        array_write(input[i], v[i].data());
    }
    values w = random_values(tile_array_count(m.traces), -1, 1, 5);
    tile_array *seed;
    must(tile_array_create(sim.ctx, TILE_F64, tile_array_shape(m.traces), &seed));
    array_write(seed, w.data());

    model_run(&m, m.record, 1);
    must(tape_backward_seeds(m.record, 1, &m.traces, &seed));
    values traces = read(m.traces);
    double forward = dot(traces, w), backward = 0;
    for (unsigned i = 0; i < 3; i++) {
        double part = dot(v[i], read(tile_array_grad(input[i])));
        EXPECT_NE(part, 0) << "input " << i;
        backward += part;
    }
    EXPECT_GT(std::fabs(forward), 1e-3 * std::sqrt(dot(traces, traces) * dot(w, w)));
    EXPECT_LE(std::fabs(forward - backward), 1e-12 * std::fabs(forward))
        << forward << " and " << backward;
    tile_array_destroy(seed);
}

INSTANTIATE_TEST_SUITE_P(Top, WaveOperator, testing::Values(false, true));

/* Observed data of one velocity, the misfit and the gradient at another. */
struct problem {
    simulation sim;
    std::vector<tile_array *> observed;
    values velocity;

    problem(const survey &s, tile_dtype dtype, int threads = 2) : sim(s, dtype, threads) {
        sim.set_velocity(random_values(sim.cells(), 1500, 2500, 11));
        for (int64_t shot = 0; shot < s.shots; shot++) {
            tile_array *traces;
            must(tile_array_create(sim.ctx, dtype, TILE_SHAPE(s.steps, s.nx), &traces));
            model_shot(&sim.m, shot, traces);
            observed.push_back(traces);
        }
        velocity = random_values(sim.cells(), 1500, 2500, 12);
    }
    ~problem() {
        for (tile_array *traces : observed) tile_array_destroy(traces);
    }
    double misfit(const values &v) {
        sim.set_velocity(v);
        return model_gradient(&sim.m, observed.data());
    }
    values gradient() {
        misfit(velocity);
        return read(tile_array_grad(sim.m.velocity));
    }
    /* Central difference along a direction, 4th order: error h^4, rounding 1e-16 misfit / h. */
    double difference(const values &direction, double h) {
        auto at = [&](double t) {
            values v = velocity;
            for (size_t i = 0; i < v.size(); i++) v[i] += t * direction[i];
            return misfit(v);
        };
        return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    }
};

class FwiGradient : public testing::TestWithParam<bool> {};

TEST_P(FwiGradient, MatchesCentralDifferencesAlongDirections) {
    problem p(small_survey(GetParam()), TILE_F64);
    values g = p.gradient();
    for (unsigned seed = 21; seed < 25; seed++) {
        values direction = random_values(p.sim.cells(), -1, 1, seed);
        double ours = dot(g, direction), numeric = p.difference(direction, 0.5);
        EXPECT_GT(std::fabs(numeric), 1e-2 * std::sqrt(dot(g, g))) << "seed " << seed;
        EXPECT_LE(std::fabs(ours - numeric), 1e-6 * std::fabs(numeric))
            << ours << " and " << numeric << ", seed " << seed;
    }
}

TEST_P(FwiGradient, MatchesCentralDifferencesAtSingleElements) {
    problem p(small_survey(GetParam()), TILE_F64);
    const survey &s = p.sim.s;
    values g = p.gradient();
    double largest = 0;
    for (double x : g) largest = std::fmax(largest, std::fabs(x));
    /* Corners (whose velocity fills the sponge's corners), the source's cell, the middle. */
    int64_t source = s.row * s.nx + survey_source(&s, 0), middle = s.nz / 2 * s.nx + s.nx / 2;
    for (int64_t i : {int64_t{0}, s.nx - 1, s.nz * s.nx - 1, source, middle, middle + 3}) {
        values direction(g.size());
        direction[static_cast<size_t>(i)] = 1;
        double ours = g[static_cast<size_t>(i)], numeric = p.difference(direction, 1);
        EXPECT_LE(std::fabs(ours - numeric), 1e-6 * std::fmax(std::fabs(numeric), 1e-3 * largest))
            << ours << " and " << numeric << ", element " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Top, FwiGradient, testing::Values(false, true));

TEST(Fwi, TheGradientHasTheSameBitsForAnyNumberOfThreads) {
    values one = problem(small_survey(false), TILE_F32, 1).gradient();
    for (int threads : {2, 3, 8})
        EXPECT_EQ(one, problem(small_survey(false), TILE_F32, threads).gradient()) << threads;
}

TEST(Fwi, GradientsOfShotsAddUp) {
    problem p(small_survey(false), TILE_F64);
    wave_model &m = p.sim.m;
    values both = p.gradient();
    EXPECT_EQ(both, p.gradient()) << "each call starts from zero";
    p.sim.s.shots = 1;
    values first = p.gradient();
    EXPECT_NE(both, first);
    model_rest(&m, m.record);
    model_run(&m, m.record, 1);
    must(tape_misfit(m.record, m.traces, p.observed[1], m.misfit));
    must(tape_backward(m.record, m.misfit));
    EXPECT_EQ(both, read(tile_array_grad(m.velocity)));
    p.sim.s.shots = 2;
}

/* In homogeneous ground the wave runs at v, and comes back from no side. */
TEST(Fwi, AWaveRunsAtItsSpeedAndLeaves) {
    survey s = {};
    s.nz = 60;
    s.nx = 121;
    s.spacing = 10;
    s.side = 40;
    s.free_surface = true;
    s.row = 30;
    s.shots = 1;
    s.steps = 700;
    s.dt = 0.0025;
    s.frequency = 15;
    simulation sim(s, TILE_F64);
    sim.set_velocity(values(static_cast<size_t>(sim.cells()), 2000));
    model_rest(&sim.m, nullptr);
    model_run(&sim.m, nullptr, 0);
    values traces = read(sim.m.traces);
    auto at = [&](int64_t t, int64_t x) { return traces[static_cast<size_t>(t * s.nx + x)]; };
    auto peak = [&](int64_t x) {
        int64_t best = 0;
        for (int64_t t = 0; t < 200; t++)
            if (std::fabs(at(t, x)) > std::fabs(at(best, x))) best = t;
        return best;
    };
    int64_t source = survey_source(&s, 0);
    EXPECT_EQ(source, 60);
    /* 20 cells farther: 20 * 10 m / 2000 m/s = 0.1 s = 40 steps; what the surface reflects comes
     * later. */
    EXPECT_NEAR(static_cast<double>(peak(source + 30) - peak(source + 10)), 40, 1);
    double largest = std::fabs(at(peak(source + 30), source + 30)), late = 0;
    for (int64_t t = 0; t < s.steps; t++)
        EXPECT_NEAR(at(t, source - 25), at(t, source + 25), 1e-12 * largest);
    for (int64_t t = 600; t < s.steps; t++)
        for (int64_t x = 0; x < s.nx; x++) late = std::fmax(late, std::fabs(at(t, x)));
    EXPECT_LT(late, 0.02 * largest);
}

TEST(Survey, RefusesUnstableAndUnderSampledSettingsWithTheNumberToChange) {
    survey s = small_survey(false);
    s.steps = 250;
    char message[256];
    EXPECT_TRUE(survey_check(&s, 1500, 2500, message, sizeof message)) << message;
    EXPECT_DOUBLE_EQ(survey_cfl(&s, 2500), 0.5);  /* 2500 * 0.004 / 20 */
    EXPECT_DOUBLE_EQ(survey_points(&s, 1500), 5); /* 1500 / (2.5 * 6 * 20) */
    EXPECT_FALSE(survey_check(&s, 1500, 3100, message, sizeof message));
    EXPECT_NE(std::string(message).find("--dt of at most 0.00394 s"), std::string::npos) << message;
    s.frequency = 7.5; /* 1500 / (2.5 * 7.5 * 20) = 4 points */
    EXPECT_FALSE(survey_check(&s, 1500, 2500, message, sizeof message));
    EXPECT_NE(std::string(message).find("--spacing of at most 16 m"), std::string::npos) << message;
    EXPECT_NE(std::string(message).find("--frequency of at most 6 Hz"), std::string::npos)
        << message;
}

/* A run a little above the limit grows without bound, one below does not. */
TEST(Survey, TheLimitOfTheCflNumberIsWhereRunsBecomeUnstable) {
    for (double cfl : {0.60, 0.64}) {
        survey s = small_survey(true);
        s.steps = 600;
        s.dt = cfl * s.spacing / 2000;
        simulation sim(s, TILE_F64);
        sim.set_velocity(values(static_cast<size_t>(sim.cells()), 2000));
        model_rest(&sim.m, nullptr);
        model_run(&sim.m, nullptr, 0);
        double largest = 0;
        for (double x : read(sim.m.traces)) largest = std::fmax(largest, std::fabs(x));
        EXPECT_EQ(cfl < SURVEY_CFL_LIMIT, largest < 10) << cfl << ": " << largest;
    }
}

TEST(Ground, ResamplesLinearlyAndKeepsTheKnownRows) {
    ground a = ground_create(4, 7, 10);
    for (int64_t i = 0; i < 28; i++)
        a.v[i] = 1000 + 100 * static_cast<double>(i / 7) + 10 * static_cast<double>(i % 7);
    ground b = ground_resample(&a, 15); /* samples at 0, 15, 30 by 0, 15, ..., 60 m */
    ASSERT_EQ(b.nz, 3);
    ASSERT_EQ(b.nx, 5);
    EXPECT_DOUBLE_EQ(b.v[0], 1000);
    EXPECT_DOUBLE_EQ(b.v[1 * 5 + 1], 1165); /* 1000 + 1.5 * 100 + 1.5 * 10 */
    EXPECT_DOUBLE_EQ(b.v[2 * 5 + 4], 1360);
    ground c = ground_smooth(&b, 20, 1);
    for (int64_t x = 0; x < 5; x++) EXPECT_EQ(c.v[x], b.v[x]);
    EXPECT_GT(c.v[1 * 5], 1000);
    EXPECT_GT(ground_error(&c, &b), 0);
    EXPECT_EQ(ground_error(&b, &b), 0);
    for (ground *g : {&a, &b, &c}) ground_clear(g);
}

/* The options point into the words. */
fwi_options parse(const std::vector<std::string> &words) {
    std::vector<char *> argv = {const_cast<char *>("fwi")};
    for (const std::string &w : words) argv.push_back(const_cast<char *>(w.c_str()));
    argv.push_back(nullptr);
    return options_parse(static_cast<int>(argv.size()) - 1, argv.data());
}

TEST(Options, TakesBothSpellings) {
    const std::vector<std::string> words = {"--shots", "3", "--noise=0.25", "--optimizer=adam",
                                            "--out=a=b"};
    fwi_options o = parse(words);
    EXPECT_EQ(o.shots, 3);
    EXPECT_EQ(o.noise, 0.25);
    EXPECT_STREQ(o.optimizer, "adam");
    EXPECT_STREQ(o.out, "a=b");
    EXPECT_EQ(o.iterations, 12);
}

TEST(Options, RefusesEachBadOptionWithASentenceAndExit2) {
    const struct {
        std::vector<std::string> words;
        const char *sentence;
    } cases[] = {
        {{"--shot=3"}, "there is no option '--shot=3'"},
        {{"shots"}, "there is no option 'shots'"},
        {{"--"}, "there is no option '--'"},
        {{"--=4"}, "there is no option '--=4'"},
        {{"--shots"}, "--shots needs a value"},
        {{"--shots=0"}, "--shots takes a whole number from 1 to 10000, not '0'"},
        {{"--shots=2.5"}, "--shots takes a whole number"},
        {{"--shots", "-1"}, "not '-1'"},
        {{"--iterations=1e99"}, "not '1e99'"},
        {{"--spacing="}, "--spacing takes a number"},
        {{"--spacing=nan"}, "not 'nan'"},
        {{"--frequency=4Hz"}, "not '4Hz'"},
        {{"--noise=-1"}, "--noise takes a number from 0"},
        {{"--optimizer=sgd"}, "--optimizer takes lbfgs or adam, not 'sgd'"},
        {{"--top="}, "--top takes absorbing or free, not ''"},
        {{"--out="}, "--out needs a path"},
    };
    for (const auto &c : cases)
        EXPECT_EXIT(parse(c.words), testing::ExitedWithCode(2), c.sentence) << c.sentence;
}

} // namespace
