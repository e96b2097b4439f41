/* space_test.cc: where tiles are kept, and the limit on a block's shared memory. */
#include "tests/tape_fixture.h"

namespace {

/* 1000 int64: 8000 bytes, a multiple of the alignment. */
constexpr int64_t kLength = 1000;
constexpr size_t kBytes = 8000;

class SpaceTest : public testing::Test {
  protected:
    explicit SpaceTest(size_t shared_bytes = kBytes) {
        tile_context_options options = {};
        options.threads = 1;
        options.shared_bytes = shared_bytes;
        EXPECT_EQ(TILE_OK, tile_context_create(&options, &ctx));
    }
    ~SpaceTest() override {
        tile_kernel_destroy(kernel);
        tile_context_destroy(ctx);
    }
    tile_status build(const std::function<void(tile_builder *)> &body) {
        tile_builder *b = tile_kernel_begin(ctx, "k");
        body(b);
        tile_kernel_destroy(kernel);
        kernel = nullptr;
        return tile_kernel_end(b, &kernel);
    }
    static tile indices(tile_builder *b, int64_t start) {
        return tile_iota(b, TILE_I64, TILE_SHAPE(kLength), 0, tile_int(b, start));
    }
    static tile_param reals(tile_builder *b, const char *name) {
        return tile_array_param(b, name, TILE_F64, 1);
    }
    static tile take(tile_param a, tile i) {
        return tile_load_indexed(a, i, TILE_SHAPE(kLength), TILE_AT_ZERO, 0);
    }

    tile_context *ctx = nullptr;
    tile_kernel *kernel = nullptr;
};

TEST_F(SpaceTest, NothingIsSharedUnlessSaidSo) {
    ASSERT_EQ(TILE_OK, build([](tile_builder *b) {
                  const tile t = tile_load(reals(b, "a"), TILE_SHAPE(4), TILE_AT_ZERO);
                  EXPECT_EQ(TILE_REGISTER, tile_space_of(t));
                  tile_store(reals(b, "y"), t, TILE_AT_ZERO);
              }));
    EXPECT_EQ(0u, tile_kernel_shared_bytes(kernel));
    EXPECT_EQ(0u, tile_kernel_shared_bytes(nullptr));
    EXPECT_EQ(TILE_REGISTER, tile_space_of(tile{nullptr, -1}));
}

TEST_F(SpaceTest, IndicesGoToSharedMemory) {
    ASSERT_EQ(TILE_OK, build([](tile_builder *b) {
                  const tile i = indices(b, 3);
                  EXPECT_EQ(TILE_REGISTER, tile_space_of(i));
                  const tile t = take(reals(b, "a"), i);
                  EXPECT_EQ(TILE_SHARED, tile_space_of(i));
                  EXPECT_EQ(TILE_REGISTER, tile_space_of(t));
                  tile_store(reals(b, "y"), t, TILE_AT_ZERO);
              }))
        << tile_last_error();
    EXPECT_EQ(kBytes, tile_kernel_shared_bytes(kernel));
}

TEST_F(SpaceTest, PreviousValuesAreWhereTheAddedTileIs) {
    EXPECT_EQ(TILE_OK, build([](tile_builder *b) {
                  const tile_param a = reals(b, "a"), y = reals(b, "y");
                  const tile t = tile_load(a, TILE_SHAPE(8), TILE_AT_ZERO);
                  EXPECT_EQ(TILE_REGISTER, tile_space_of(tile_atomic_add(y, t, TILE_AT_ZERO)));
                  EXPECT_EQ(t.id, tile_set_space(t, TILE_SHARED).id);
                  const tile before = tile_atomic_add(y, t, TILE_AT_ZERO);
                  EXPECT_EQ(TILE_SHARED, tile_space_of(before));
                  tile_store(a, before, TILE_AT_ZERO);
              }))
        << tile_last_error();
    EXPECT_EQ(128u, tile_kernel_shared_bytes(kernel)); /* both at one time, 64 bytes each */
}

/* The second one's room is the first one's, which is used no more. */
TEST_F(SpaceTest, RoomIsUsedAgain) {
    ASSERT_EQ(TILE_OK, build([](tile_builder *b) {
                  const tile_param a = reals(b, "a"), y = reals(b, "y");
                  tile_store(y, take(a, indices(b, 1)), TILE_AT_ZERO);
                  tile_store(y, take(a, indices(b, 2)), TILE_AT_ZERO);
              }))
        << tile_last_error();
    EXPECT_EQ(kBytes, tile_kernel_shared_bytes(kernel));
}

TEST_F(SpaceTest, TooMuchAtOneTimeIsRefused) {
    const tile_status status = build([](tile_builder *b) {
        const tile_param a = reals(b, "a"), y = reals(b, "y");
        const tile one = indices(b, 1), two = indices(b, 2);
        tile_store(y, take(a, one), TILE_AT_ZERO);
        tile_store(y, take(a, two), TILE_AT_ZERO);
        tile_store(y, take(y, one), TILE_AT_ZERO);
    });
    EXPECT_EQ(TILE_E_MEMORY, status);
    EXPECT_STREQ("tile_kernel_end: kernel k: tiles in shared memory need 16000 bytes at one time, "
                 "a block has 8000",
                 tile_last_error());
    EXPECT_EQ(nullptr, kernel);
}

/* What a loop reads from outside must stay until the last iteration. */
TEST_F(SpaceTest, ALoopKeepsWhatItReads) {
    const auto body = [](tile_builder *b, bool inside) {
        const tile_param a = reals(b, "a"), y = reals(b, "y");
        const tile outer = indices(b, 1);
        tile_loop loop = tile_loop_begin(b, tile_int(b, 3), TILE_NONE);
        tile_store(y, take(a, outer), TILE_AT_ZERO);
        if (inside) {
            const tile i = tile_iota(b, TILE_I64, TILE_SHAPE(kLength), 0, loop.index);
            tile_store(y, take(a, i), TILE_AT_ZERO);
        }
        tile_loop_end(&loop, TILE_NONE);
    };
    EXPECT_EQ(TILE_OK, build([&](tile_builder *b) { body(b, false); })) << tile_last_error();
    EXPECT_EQ(kBytes, tile_kernel_shared_bytes(kernel));
    EXPECT_EQ(TILE_E_MEMORY, build([&](tile_builder *b) { body(b, true); }));
}

TEST_F(SpaceTest, UnusedTilesCostNothing) {
    ASSERT_EQ(TILE_OK, build([](tile_builder *b) {
                  tile_set_space(indices(b, 1), TILE_SHARED);
                  tile_set_space(indices(b, 2), TILE_SHARED);
              }));
    EXPECT_EQ(0u, tile_kernel_shared_bytes(kernel));
    EXPECT_EQ(TILE_E_ARGUMENT, build([](tile_builder *b) {
                  tile_set_space(tile_int(b, 1), static_cast<tile_space>(3));
              }));
}

class WholeSpaceTest : public SpaceTest {
  protected:
    WholeSpaceTest() : SpaceTest(0) {}
};

TEST_F(WholeSpaceTest, TheDefaultIsWhatTheLargestDeviceHas) {
    const auto body = [](tile_builder *b, int64_t n) {
        tile_store(tile_array_param(b, "y", TILE_F32, 1),
                   tile_set_space(tile_iota(b, TILE_F32, TILE_SHAPE(n), 0,
                                            tile_real(b, TILE_F32, 0)),
                                  TILE_SHARED),
                   TILE_AT_ZERO);
    };
    EXPECT_EQ(TILE_OK, build([&](tile_builder *b) { body(b, 227 * 256); })) << tile_last_error();
    EXPECT_EQ(232448u, tile_kernel_shared_bytes(kernel));
    EXPECT_EQ(TILE_E_MEMORY, build([&](tile_builder *b) { body(b, 227 * 256 + 1); }));
}

} // namespace
