/* struct_test.cc: arrays of structs: types, views, kernels, gradients, errors. */
#include <cstddef>

#include "core/half.h"
#include "core/struct_dtype.h"
#include "tests/tape_fixture.h"

namespace {

struct Particle {
    double x[2];
    float charge;
    uint8_t kind; /* no addition; three bytes of padding follow */
    double m;
    int32_t id;
    char unused[4]; /* no member */
};

tile_dtype particle() {
    const tile_member members[] = {TILE_MEMBER_ARRAY(Particle, x, TILE_F64, 2),
                                   TILE_MEMBER(Particle, charge, TILE_F32),
                                   TILE_MEMBER(Particle, kind, TILE_U8),
                                   TILE_MEMBER(Particle, m, TILE_F64),
                                   TILE_MEMBER(Particle, id, TILE_I32)};
    tile_dtype dtype = TILE_DTYPES;
    EXPECT_EQ(TILE_OK, tile_dtype_struct("particle", sizeof(Particle), 5, members, &dtype))
        << tile_last_error();
    return dtype;
}

std::vector<Particle> swarm(size_t n) {
    std::vector<Particle> all(n);
    std::memset(static_cast<void *>(all.data()), 0x5a, n * sizeof(Particle));
    for (size_t i = 0; i < n; i++) {
        const double t = static_cast<double>(i);
        all[i].x[0] = 0.5 + 0.25 * t;
        all[i].x[1] = 1.5 - 0.125 * t;
        all[i].charge = static_cast<float>(i) - 2.0f;
        all[i].kind = static_cast<uint8_t>(200 + i);
        all[i].m = 2.0 + 0.5 * t;
        all[i].id = static_cast<int32_t>(10 * i);
    }
    return all;
}

class StructTest : public TapeTest {
  protected:
    tile_array *particles(const std::vector<Particle> &all, bool grad = false) {
        tile_array *a = array(particle(), TILE_SHAPE(all.size()));
        EXPECT_EQ(TILE_OK, tile_array_write(a, all.data(), all.size() * sizeof(Particle)))
            << tile_last_error();
        EXPECT_EQ(TILE_OK, grad ? tile_array_request_grad(a) : TILE_OK) << tile_last_error();
        return a;
    }
    static std::vector<Particle> held(tile_array *a) {
        std::vector<Particle> all(static_cast<size_t>(tile_array_count(a)));
        EXPECT_EQ(TILE_OK, tile_array_read(a, all.data(), all.size() * sizeof(Particle)));
        return all;
    }
    tile_array *field(tile_array *a, const char *name) {
        tile_array *view = nullptr;
        EXPECT_EQ(TILE_OK, tile_array_field(a, name, &view)) << tile_last_error();
        return own(view);
    }
    /* x += m * x, charge doubled where kind is even, id kept. */
    tile_kernel *step() {
        return kernel("step", [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "p", particle(), 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, 4));
            const tile t = tile_load(p, TILE_SHAPE(4), at);
            const tile m = tile_reshape(tile_field(t, "m"), TILE_SHAPE(4, 1));
            const tile x = tile_field(t, "x");
            const tile moved = tile_with_field(t, "x", tile_add(x, tile_mul(m, x)));
            tile_store(p, moved, at);
        });
    }
};

TEST_F(StructTest, TypesAreWhatTheyAreDescribedAs) {
    const tile_dtype dtype = particle();
    EXPECT_EQ(dtype, particle());
    EXPECT_STREQ("particle", tile_dtype_name(dtype));
    EXPECT_EQ(sizeof(Particle), tile_dtype_size(dtype));
    const tile_member other[] = {TILE_MEMBER(Particle, m, TILE_F64)};
    tile_dtype second = TILE_DTYPES;
    EXPECT_EQ(TILE_OK, tile_dtype_struct("particle", sizeof(Particle), 1, other, &second));
    EXPECT_NE(dtype, second);
    EXPECT_STREQ("unknown dtype", tile_dtype_name(static_cast<tile_dtype>(TILE_STRUCTS + 1000)));
}

TEST_F(StructTest, BadDescriptionsAreRefused) {
    tile_dtype d = TILE_DTYPES;
    const tile_shape one = TILE_SCALAR;
    const auto make = [&](const std::vector<tile_member> &m, size_t size = 16) {
        return tile_dtype_struct("bad", size, static_cast<int>(m.size()), m.data(), &d);
    };
    expect_error(TILE_E_ARGUMENT, "name is 2x", tile_dtype_struct("2x", 8, 0, nullptr, &d));
    expect_error(TILE_E_ARGUMENT, "members is NULL", tile_dtype_struct("s", 8, 1, nullptr, &d));
    const tile_member x = {"x", TILE_F32, one, 0, 4};
    expect_error(TILE_E_ARGUMENT, "0 members, wanted 1 to 16",
                 tile_dtype_struct("bad", 8, 0, &x, &d));
    expect_error(TILE_E_ARGUMENT, "size is 0 bytes", make({{"x", TILE_F32, one, 0, 4}}, 0));
    expect_error(TILE_E_ARGUMENT, "a member's name is a b", make({{"a b", TILE_F32, one, 0, 4}}));
    expect_error(TILE_E_DTYPE, "member x has dtype 99", make({{"x", (tile_dtype)99, one, 0, 4}}));
    expect_error(TILE_E_DTYPE, "no struct", make({{"x", particle(), one, 0, 48}}, 48));
    expect_error(TILE_E_ARGUMENT, "member x is float32 [], its size is 8 bytes",
                 make({{"x", TILE_F32, one, 0, 8}}));
    expect_error(TILE_E_ARGUMENT, "member x is float32 [3], its size is 16 bytes",
                 make({{"x", TILE_F32, TILE_SHAPE(3), 0, 16}}));
    expect_error(TILE_E_ARGUMENT, "member x ends behind the 16 bytes",
                 make({{"x", TILE_F64, one, 16, 8}}));
    expect_error(TILE_E_ARGUMENT, "member x at byte 4 of 16", make({{"x", TILE_F64, one, 4, 8}}));
    expect_error(TILE_E_ARGUMENT, "at byte 0 of 12", make({{"x", TILE_F64, one, 0, 8}}, 12));
    expect_error(TILE_E_ARGUMENT, "two members are called x",
                 make({{"x", TILE_F32, one, 0, 4}, {"x", TILE_F32, one, 4, 4}}));
    expect_error(TILE_E_ARGUMENT, "members x and y share bytes",
                 make({{"x", TILE_F32, TILE_SHAPE(2), 0, 8}, {"y", TILE_F32, one, 4, 4}}));
    EXPECT_EQ(TILE_DTYPES, d);
}

TEST_F(StructTest, ViewsOfMembers) {
    tile_array *a = particles(swarm(5), true);
    EXPECT_EQ((Reals{0.5, 1.5, 0.75, 1.375, 1, 1.25, 1.25, 1.125, 1.5, 1}), read(field(a, "x")));
    EXPECT_EQ(2, tile_array_shape(field(a, "x")).rank);
    EXPECT_EQ((Reals{-2, -1, 0, 1, 2}), read(field(a, "charge")));
    tile_array *part = slice(a, {1}, TILE_SHAPE(2), {2});
    EXPECT_EQ((Reals{2.5, 3.5}), read(field(part, "m")));
    write(field(part, "m"), {7, 9});
    EXPECT_EQ(7, held(a)[1].m);
    EXPECT_EQ(9, held(a)[3].m);
    EXPECT_EQ(3.0, held(a)[2].m);
    EXPECT_NE(nullptr, tile_array_grad(field(a, "m")));
    EXPECT_EQ(nullptr, tile_array_grad(field(a, "id")));
    tile_array *view = nullptr;
    expect_error(TILE_E_ARGUMENT, "particle has no member y", tile_array_field(a, "y", &view));
    expect_error(TILE_E_DTYPE, "wanted a struct", tile_array_field(zeros(2), "x", &view));
    expect_error(TILE_E_DTYPE, "fill its members", tile_array_fill(a, 0));
    expect_error(TILE_E_DTYPE, "save its members", tile_array_save_npy(a, "nowhere.npy"));
    tile_array *made = nullptr;
    expect_error(TILE_E_ARGUMENT, "more than 6",
                 tile_array_create(ctx, particle(), TILE_SHAPE(1, 1, 1, 1, 1, 1), &made));
}

TEST_F(StructTest, AKernelMovesMembersAndTouchesNothingElse) {
    const std::vector<Particle> before = swarm(6);
    tile_array *a = particles(before);
    ASSERT_EQ(TILE_OK, launch(step(), a)) << tile_last_error();
    std::vector<Particle> want = before;
    for (Particle &p : want)
        for (double &x : p.x) x += p.m * x;
    const std::vector<Particle> got = held(a);
    EXPECT_EQ(0, std::memcmp(want.data(), got.data(), want.size() * sizeof(Particle)));
}

TEST_F(StructTest, GradientsHaveTheSameLayout) {
    tile_array *a = particles(swarm(6), true);
    ASSERT_EQ(TILE_OK, launch(step(), a)) << tile_last_error();
    tile_array *x = field(a, "x"), *seed = reals(TILE_SHAPE(6, 2), Reals(12));
    Reals up;
    for (int k = 0; k < 12; k++) up.push_back(k - 5.5);
    write(seed, up);
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &x, &seed)) << tile_last_error();
    const std::vector<Particle> at = swarm(6);
    Reals dx, dm;
    for (size_t i = 0; i < 6; i++) {
        double m = 0;
        for (size_t k = 0; k < 2; k++) {
            dx.push_back(up[2 * i + k] * (1 + at[i].m));
            m += up[2 * i + k] * at[i].x[k];
        }
        dm.push_back(m);
    }
    EXPECT_EQ(dx, grad(x));
    EXPECT_EQ(dm, grad(field(a, "m")));
    EXPECT_EQ(Reals(6), grad(field(a, "charge")));
    const std::vector<Particle> whole = held(tile_array_grad(a));
    EXPECT_EQ(dm[4], whole[4].m);
    EXPECT_EQ(0, whole[4].id);
    EXPECT_EQ(0, whole[4].kind);
    /* Backward again adds. */
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &x, &seed));
    for (double &v : dm) v *= 2;
    EXPECT_EQ(dm, grad(field(a, "m")));
}

TEST_F(StructTest, AWholeProgramPassesTheGradientCheck) {
    tile_array *a = particles(swarm(6), true);
    for (int k = 0; k < 3; k++) ASSERT_EQ(TILE_OK, launch(step(), a)) << tile_last_error();
    tile_array *copy = array(particle(), TILE_SHAPE(6));
    ASSERT_EQ(TILE_OK, tape_copy(record, a, copy)) << tile_last_error();
    tile_array *x = field(copy, "x"), *loss = array(TILE_F64, TILE_SHAPE(1));
    ASSERT_EQ(TILE_OK, tape_dot(record, x, x, loss)) << tile_last_error();
    tape_check_report report;
    ASSERT_EQ(TILE_OK, tape_gradcheck(record, loss, TAPE_CHECK_ALL, &report)) << tile_last_error();
    EXPECT_TRUE(report.passed);
    backward(loss);
    EXPECT_GT(std::fabs(grad(field(a, "m"))[0]), 1.0);
}

TEST_F(StructTest, IndexedStoresTakeTheLastAndGiveItTheGradient) {
    tile_array *to = particles(swarm(4), true), *from = particles(swarm(6), true);
    tile_array *index = integers({2, 0, -1, 2, 9, 0});
    tile_kernel *k = kernel("put", [](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", particle(), 1);
        const tile_param q = tile_array_param(b, "q", particle(), 1);
        const tile_param i = tile_array_param(b, "i", TILE_I32, 1);
        const tile at = tile_load(i, TILE_SHAPE(6), TILE_AT_ZERO);
        tile_store_indexed(p, at, tile_load(q, TILE_SHAPE(6), TILE_AT_ZERO), TILE_AT_ZERO, 0);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(to, from, index)));
    std::vector<Particle> want = swarm(4);
    const std::vector<Particle> all = swarm(6);
    const std::vector<Particle> got = held(to);
    EXPECT_EQ(all[5].m, got[0].m);
    EXPECT_EQ(want[1].m, got[1].m);
    EXPECT_EQ(all[3].kind, got[2].kind);
    EXPECT_EQ(all[3].id, got[2].id);
    EXPECT_EQ(want[3].x[1], got[3].x[1]);
    tile_array *m = field(to, "m"), *seed = reals({1, 2, 4, 8});
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &m, &seed)) << tile_last_error();
    EXPECT_EQ((Reals{0, 0, 0, 4, 0, 1}), grad(field(from, "m")));
    EXPECT_EQ((Reals{0, 2, 0, 8}), grad(m));
}

TEST_F(StructTest, AtomicAdditionLeavesWhatHasNone) {
    tile_array *to = particles(swarm(3), true), *from = particles(swarm(4), true);
    tile_array *previous = particles(swarm(4)), *index = integers({1, 1, -1, 0});
    tile_kernel *k = kernel("add", [](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", particle(), 1);
        const tile_param q = tile_array_param(b, "q", particle(), 1);
        const tile_param r = tile_array_param(b, "r", particle(), 1);
        const tile_param i = tile_array_param(b, "i", TILE_I32, 1);
        const tile at = tile_load(i, TILE_SHAPE(4), TILE_AT_ZERO);
        const tile t = tile_load(q, TILE_SHAPE(4), TILE_AT_ZERO);
        tile_store(r, tile_atomic_add_indexed(p, at, t, TILE_AT_ZERO, 0), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(to, from, previous, index)))
        << tile_last_error();
    const std::vector<Particle> p = swarm(3), q = swarm(4);
    const std::vector<Particle> got = held(to), before = held(previous);
    EXPECT_EQ(p[1].m + q[0].m + q[1].m, got[1].m);
    EXPECT_EQ(p[1].id + q[0].id + q[1].id, got[1].id);
    EXPECT_EQ(p[0].x[1] + q[3].x[1], got[0].x[1]);
    EXPECT_EQ(p[2].charge, got[2].charge);
    EXPECT_EQ(p[1].kind, got[1].kind);
    EXPECT_EQ(p[1].m, before[0].m);
    EXPECT_EQ(p[1].m + q[0].m, before[1].m);
    EXPECT_EQ(p[1].kind, before[1].kind);
    EXPECT_EQ(0, before[2].kind);
    EXPECT_EQ(0, before[2].m);
    tile_array *m = field(to, "m"), *seed = reals({1, 2, 4});
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &m, &seed)) << tile_last_error();
    EXPECT_EQ((Reals{2, 2, 0, 1}), grad(field(from, "m")));
    EXPECT_EQ((Reals{1, 2, 4}), grad(m));
}

TEST_F(StructTest, OneElementOfAnyArray) {
    tile_array *a = particles(swarm(4)), *grid = array(particle(), TILE_SHAPE(2, 2));
    tile_kernel *k = kernel("one", [](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", particle(), 1);
        const tile_param q = tile_array_param(b, "q", particle(), 2);
        const tile t = tile_load(p, TILE_SCALAR, TILE_AT(tile_int(b, 2)));
        tile_store(q, t, TILE_AT(tile_int(b, 1), tile_int(b, 0)));
    });
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a, grid)))
        << tile_last_error();
    const std::vector<Particle> all = swarm(4), got = held(grid);
    EXPECT_EQ(all[2].x[1], got[2].x[1]);
    EXPECT_EQ(all[2].id, got[2].id);
    EXPECT_EQ(0, got[3].m);
}

TEST_F(StructTest, AStructIsMadeOfItsMembers) {
    tile_array *a = array(particle(), TILE_SHAPE(3));
    tile_kernel *k = kernel("make", [](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", particle(), 1);
        const tile n = tile_iota(b, TILE_F64, TILE_SHAPE(3), 0, tile_real(b, TILE_F64, 1));
        const tile id = tile_cast(n, TILE_I32), charge = tile_cast(n, TILE_F32);
        const tile x = tile_reshape(n, TILE_SHAPE(3, 1));
        const tile kind = tile_full(b, TILE_U8, TILE_SCALAR, 7);
        const tile t = tile_struct(b, particle(), TILE_SHAPE(3),
                                   TILE_LIST(x, charge, kind, tile_mul(n, n), id));
        tile_store(p, t, TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a))) << tile_last_error();
    const std::vector<Particle> got = held(a);
    EXPECT_EQ(9, got[2].m);
    EXPECT_EQ(3, got[2].x[0]);
    EXPECT_EQ(3, got[2].x[1]);
    EXPECT_EQ(3, got[2].id);
    EXPECT_EQ(7, got[0].kind);
}

/* What the host overwrites is a constant: no gradient goes to what was there before. */
TEST_F(StructTest, AHostWriteCutsTheGradient) {
    tile_array *a = particles(swarm(4), true);
    ASSERT_EQ(TILE_OK, launch(step(), a));
    const std::vector<Particle> all = swarm(4);
    tile_array *first = slice(a, {0}, TILE_SHAPE(2));
    ASSERT_EQ(TILE_OK, tile_array_write(first, all.data(), 2 * sizeof(Particle)));
    ASSERT_EQ(TILE_OK, launch(step(), a));
    tile_array *x = field(a, "x"), *seed = reals(TILE_SHAPE(4, 2), {1, 0, 1, 0, 1, 0, 1, 0});
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &x, &seed)) << tile_last_error();
    const Reals dm = grad(field(a, "m"));
    EXPECT_EQ(0, dm[0]);
    EXPECT_EQ(0, dm[1]);
    for (size_t i = 2; i < 4; i++) EXPECT_EQ(2 * all[i].x[0] * (1 + all[i].m), dm[i]);
}

/* A stack of structs, carried through loops; a struct carried by a loop. */
TEST_F(StructTest, LoopsCarryStructsAndStacksOfThem) {
    tile_array *a = particles(swarm(4), true), *out = particles(swarm(4));
    tile_kernel *k = kernel("reverse", [](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", particle(), 1);
        const tile_param q = tile_array_param(b, "q", particle(), 1);
        const tile_stack s = tile_stack_create(b, 8, particle());
        const tile yes = tile_full(b, TILE_BOOL, TILE_SCALAR, 1);
        tile_loop fill = tile_loop_begin(b, tile_int(b, 2), TILE_NONE);
        const tile at = tile_mul(fill.index, tile_int(b, 2));
        tile_stack_push(s, tile_load(p, TILE_SHAPE(2), TILE_AT(at)), yes);
        tile_loop_end(&fill, TILE_NONE);
        tile first = tile_zeros(b, particle(), TILE_SHAPE(2));
        tile_loop empty = tile_loop_begin(b, tile_int(b, 2), TILE_LIST(first));
        const tile t = tile_stack_pop(s, TILE_SHAPE(2), nullptr);
        tile_store(q, t, TILE_AT(tile_mul(empty.index, tile_int(b, 2))));
        tile_loop_end(&empty, TILE_LIST(t));
        tile_atomic_add(q, empty.carried[0], TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(a, out)))
        << tile_last_error();
    const std::vector<Particle> in = swarm(4), got = held(out);
    EXPECT_EQ(in[3].m + in[1].m, got[0].m);
    EXPECT_EQ(in[2].x[1] + in[0].x[1], got[1].x[1]);
    EXPECT_EQ(in[3].kind, got[0].kind);
    EXPECT_EQ(in[1].m, got[2].m);
    EXPECT_EQ(in[0].id, got[3].id);
    tile_array *m = field(out, "m"), *seed = reals({1, 2, 4, 8});
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &m, &seed)) << tile_last_error();
    EXPECT_EQ((Reals{2 + 8, 1 + 4, 2, 1}), grad(field(a, "m")));
}

TEST_F(StructTest, PartitionViewsOfStructs) {
    tile_array *a = particles(swarm(5), true);
    tile_kernel *k = kernel("swap", [](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", particle(), 1);
        const tile_partition v = tile_partition_view(p, TILE_SHAPE(2));
        const tile one = tile_int(b, 1), zero = tile_int(b, 0), two = tile_int(b, 2);
        const tile x = tile_partition_load(v, TILE_AT(zero));
        const tile y = tile_partition_load_masked(v, TILE_AT(two), 0);
        tile_partition_store(v, x, TILE_AT(one));
        tile_partition_store_masked(v, x, TILE_AT(two));
        tile_partition_atomic_add_masked(v, y, TILE_AT(zero), TILE_ORDER_RELAXED, TILE_SCOPE_BLOCK);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(a))) << tile_last_error();
    ASSERT_EQ(TILE_OK, tile_context_sync(ctx)) << tile_last_error();
    const std::vector<Particle> in = swarm(5), got = held(a);
    EXPECT_EQ(in[0].m + in[4].m, got[0].m);
    EXPECT_EQ(in[1].x[0], got[1].x[0]); /* what lies outside is zero */
    EXPECT_EQ(in[0].id, got[2].id);
    EXPECT_EQ(in[1].kind, got[3].kind);
    EXPECT_EQ(in[0].m, got[4].m);
    tile_array *m = field(a, "m"), *seed = reals({1, 2, 4, 8, 16});
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &m, &seed)) << tile_last_error();
    EXPECT_EQ((Reals{1 + 4 + 16, 2 + 8, 0, 0, 1}), grad(m));
}

/* Adjoints of 16-bit members are summed in float32: 4096 times 2^-11 into a gradient of 1 would
 * stay 1 if each were added by itself. */
struct Half {
    double w;
    tile_f16 h;
    int16_t tag;
    float f;
};

TEST_F(StructTest, SixteenBitMembersAreSummedInFloat32) {
    const tile_member members[] = {TILE_MEMBER(Half, w, TILE_F64), TILE_MEMBER(Half, h, TILE_F16),
                                   TILE_MEMBER(Half, tag, TILE_I16),
                                   TILE_MEMBER(Half, f, TILE_F32)};
    tile_dtype dtype = TILE_DTYPES;
    ASSERT_EQ(TILE_OK, tile_dtype_struct("half", sizeof(Half), 4, members, &dtype))
        << tile_last_error();
    std::vector<Half> all(3);
    for (size_t i = 0; i < 3; i++)
        all[i] = {2.0 + static_cast<double>(i), tile_f16_of_f32(static_cast<float>(i) + 1),
                  static_cast<int16_t>(i), 0.5f};
    tile_array *a = array(dtype, TILE_SHAPE(3)), *y = array(TILE_F32, TILE_SHAPE(4096));
    ASSERT_EQ(TILE_OK, tile_array_write(a, all.data(), sizeof(Half) * 3));
    ASSERT_EQ(TILE_OK, tile_array_request_grad(a)) << tile_last_error();
    tile_kernel *k = kernel("spread", [dtype](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", dtype, 1);
        const tile_param q = tile_array_param(b, "q", TILE_F32, 1);
        const tile t = tile_load(p, TILE_SCALAR, TILE_AT(tile_int(b, 1)));
        const tile h = tile_cast(tile_field(t, "h"), TILE_F32);
        const tile f = tile_field(t, "f"), w = tile_cast(tile_field(t, "w"), TILE_F32);
        const tile v = tile_expr("h*f + w", h, f, w);
        tile_store(q, tile_broadcast(v, TILE_SHAPE(64)), TILE_AT(tile_block_start(b, 0, 64)));
        /* Written too, so that its adjoint is no gradient itself. */
        tile_store(p, tile_with_field(t, "tag", tile_full(b, TILE_I16, TILE_SCALAR, 7)),
                   TILE_AT(tile_int(b, 1)));
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(64), TILE_ARGS(a, y))) << tile_last_error();
    std::vector<float> up(4096, 0x1p-11f);
    tile_array *seed = floats(up);
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &y, &seed)) << tile_last_error();
    std::vector<Half> got(3);
    ASSERT_EQ(TILE_OK, tile_array_read(tile_array_grad(a), got.data(), sizeof(Half) * 3));
    EXPECT_EQ(4096 * 0x1p-11 * 0.5, static_cast<double>(tile_f32_of_f16(got[1].h)));
    EXPECT_EQ(4096 * 0x1p-11f * 2, got[1].f);
    EXPECT_EQ(4096 * 0x1p-11, got[1].w);
    EXPECT_EQ(0, got[1].tag);
    EXPECT_EQ(0, tile_f16_of_f32(0).bits ^ got[0].h.bits);
    EXPECT_EQ(0, got[2].w);
    std::vector<Half> now(3);
    ASSERT_EQ(TILE_OK, tile_array_read(a, now.data(), sizeof(Half) * 3));
    EXPECT_EQ(7, now[1].tag);
    EXPECT_EQ(all[1].w, now[1].w);
    tape_call call = {};
    call.read_count = 1;
    call.reads = &a;
    call.forward = [](void *, tile_array *const *, tile_array *const *) { return TILE_OK; };
    expect_error(TILE_E_DTYPE, "array 0 is half with 16-bit floats",
                 tape_record_call(record, &call));
}

tile_status double_m(void *, tile_array *const *reads, tile_array *const *writes) {
    std::vector<Particle> all(4);
    const tile_status status = tile_array_read(reads[0], all.data(), 4 * sizeof(Particle));
    for (Particle &p : all) p.m *= 2;
    return status ? status : tile_array_write(writes[0], all.data(), 4 * sizeof(Particle));
}
tile_status double_m_back(void *, tile_array *const *, tile_array *const *dwrites,
                          tile_array *const *dreads) {
    std::vector<Particle> up(4), down(4);
    tile_status status = tile_array_read(dwrites[0], up.data(), 4 * sizeof(Particle));
    if (!status) status = tile_array_read(dreads[0], down.data(), 4 * sizeof(Particle));
    for (size_t i = 0; i < 4; i++) down[i].m += 2 * up[i].m;
    return status ? status : tile_array_write(dreads[0], down.data(), 4 * sizeof(Particle));
}

TEST_F(StructTest, HostCodeOnTheTapeSeesStructs) {
    tile_array *a = particles(swarm(4), true), *b = particles(swarm(4));
    tape_call call = {};
    call.read_count = call.write_count = 1;
    call.reads = &a;
    call.writes = &b;
    call.forward = double_m;
    call.backward = double_m_back;
    ASSERT_EQ(TILE_OK, tape_record_call(record, &call)) << tile_last_error();
    tile_array *m = field(b, "m"), *seed = reals({1, 2, 3, 4});
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &m, &seed)) << tile_last_error();
    EXPECT_EQ((Reals{2, 4, 6, 8}), grad(field(a, "m")));
}

TEST_F(StructTest, ErrorsNameTheStruct) {
    const auto fails = [&](tile_status wanted, const char *part, const Build &build) {
        tile_builder *b = tile_kernel_begin(ctx, "k");
        build(b);
        tile_kernel *k = nullptr;
        expect_error(wanted, part, tile_kernel_end(b, &k));
    };
    const auto load = [](tile_builder *b) {
        return tile_load(tile_array_param(b, "p", particle(), 1), TILE_SHAPE(4), TILE_AT_ZERO);
    };
    fails(TILE_E_DTYPE, "add: an operand is particle", [&](tile_builder *b) {
        const tile t = load(b);
        tile_add(t, t);
    });
    fails(TILE_E_DTYPE, "sum: an operand is particle",
          [&](tile_builder *b) { tile_sum(load(b), 1); });
    fails(TILE_E_ARGUMENT, "tile_field: particle has no member y",
          [&](tile_builder *b) { tile_field(load(b), "y"); });
    fails(TILE_E_DTYPE, "tile_field: the tile is no struct",
          [&](tile_builder *b) { tile_field(tile_int(b, 1), "y"); });
    fails(TILE_E_DTYPE, "tile_with_field: m is int64, expected float64",
          [&](tile_builder *b) { tile_with_field(load(b), "m", tile_int(b, 1)); });
    fails(TILE_E_SHAPE, "broadcast", [&](tile_builder *b) {
        tile_with_field(load(b), "m", tile_zeros(b, TILE_F64, TILE_SHAPE(3)));
    });
    fails(TILE_E_DTYPE, "store: of tile and array one is particle", [&](tile_builder *b) {
        const tile t = load(b);
        tile_store(tile_array_param(b, "q", TILE_F64, 1), t, TILE_AT_ZERO);
    });
    fails(TILE_E_SHAPE, "the offset has 2 dimensions, expected 1", [&](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", particle(), 1);
        const tile zero = tile_int(b, 0);
        tile_load(p, TILE_SHAPE(4), TILE_AT(zero, zero));
    });
    fails(TILE_E_SHAPE, "the tile has rank 2, the array has rank 1", [&](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", particle(), 1);
        tile_load(p, TILE_SHAPE(4, 2), TILE_AT_ZERO);
    });
    fails(TILE_E_ARGUMENT, "axis is 1, the array has rank 1", [&](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", particle(), 1);
        const tile i = tile_zeros(b, TILE_I32, TILE_SHAPE(4));
        tile_load_indexed(p, i, TILE_SHAPE(4), TILE_AT_ZERO, 1);
    });
    fails(TILE_E_ARGUMENT, "pad is 1", [&](tile_builder *b) {
        tile_load_padded(tile_array_param(b, "p", particle(), 1), TILE_SHAPE(4), TILE_AT_ZERO, 1);
    });
    fails(TILE_E_ARGUMENT, "there is a parameter p already", [&](tile_builder *b) {
        tile_array_param(b, "p", particle(), 1);
        tile_array_param(b, "p", particle(), 1);
    });
    fails(TILE_E_ARGUMENT, "members of structs counted", [&](tile_builder *b) {
        for (int k = 0; k < 7; k++)
            tile_array_param(b, ("p" + std::to_string(k)).c_str(), particle(), 1);
    });
    fails(TILE_E_ARGUMENT, "wanted 0 to 5 for particle",
          [&](tile_builder *b) { tile_array_param(b, "p", particle(), 6); });
    fails(TILE_E_ARGUMENT, "tile_struct: 1 tiles, particle has 5 members", [&](tile_builder *b) {
        tile_struct(b, particle(), TILE_SHAPE(2), TILE_LIST(tile_int(b, 1)));
    });
    expect_error(TILE_E_DTYPE, "array p is float64, expected particle", launch(step(), zeros(4)));
    tile_array *a = particles(swarm(4), true);
    ASSERT_EQ(TILE_OK, launch(step(), a));
    expect_error(TILE_E_DTYPE, "array 0 is particle: seed its float members",
                 tape_backward_seeds(record, 1, &a, &a));
    tile_array *retained = nullptr;
    expect_error(TILE_E_DTYPE, "array is particle", tape_retain(record, a, &retained));
    const tile_member ints[] = {TILE_MEMBER(Particle, id, TILE_I32)};
    tile_dtype plain = TILE_DTYPES;
    ASSERT_EQ(TILE_OK, tile_dtype_struct("plain", sizeof(Particle), 1, ints, &plain));
    expect_error(TILE_E_DTYPE, "array is plain, wanted a float dtype",
                 tile_array_request_grad(array(plain, TILE_SHAPE(2))));
}

TEST(Places, InterleavedOnesStayApart) {
    const int64_t n[2] = {8, 3}, by6[2] = {6, 1}, by3[2] = {3, 1};
    const tile_places wide = {1, n, by6, 4}, triple = {2, n, by6, 4}, dense = {2, n, by3, 4};
    EXPECT_TRUE(tile_places_interleave(&wide, &wide, 4));
    EXPECT_FALSE(tile_places_interleave(&wide, &wide, 24));
    EXPECT_FALSE(tile_places_interleave(&wide, &wide, 2));
    EXPECT_TRUE(tile_places_interleave(&triple, &triple, 12));
    EXPECT_FALSE(tile_places_interleave(&triple, &triple, 8));
    EXPECT_TRUE(tile_places_interleave(&triple, &wide, 12));
    EXPECT_TRUE(tile_places_interleave(&triple, &wide, -4));
    EXPECT_FALSE(tile_places_interleave(&triple, &wide, 8));
    EXPECT_FALSE(tile_places_interleave(&dense, &wide, 4));
}

} // namespace
