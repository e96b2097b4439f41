/* warm_test.cc: what has been done once is done again without allocating: malloc itself is
 * counted. */
#include "tests/cuda_fixture.h"
#include "tests/tape_fixture.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>

#if defined(__has_feature)
#define HAS_SANITIZER (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#else
#define HAS_SANITIZER 0
#endif

static std::atomic<int64_t> allocations{0};
static int (*inside)(); /* a fake CUDA device, whose own are not counted; NULL: there is none */

#define COUNT() (allocations += inside && inside() ? 0 : 1)

/* The allocators of a sanitizer are not to be replaced. */
#if defined(__GLIBC__) && !HAS_SANITIZER
#define COUNTS 1
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

void *malloc(size_t bytes) {
    COUNT();
    return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
    COUNT();
    return __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
    COUNT();
    return __libc_realloc(memory, bytes);
}
void *aligned_alloc(size_t align, size_t bytes) {
    COUNT();
    return __libc_memalign(align, bytes);
}
int posix_memalign(void **memory, size_t align, size_t bytes) {
    COUNT();
    *memory = __libc_memalign(align, bytes);
    return *memory ? 0 : ENOMEM;
}
}
#else
#define COUNTS 0
#endif

namespace {

class WarmTest : public TapeTest {
  protected:
    void SetUp() override {
        if (!COUNTS) GTEST_SKIP() << "malloc cannot be counted here";
        if (tests_run_on_cuda()) inside = use_fake_cuda()->inside;
    }
    /* How often a piece of code allocates. */
    template <typename F> static int64_t count(const F &f) {
        const int64_t before = allocations;
        f();
        return allocations - before;
    }
};

TEST_F(WarmTest, AllocationsAreCounted) {
    void *volatile memory = nullptr;
    EXPECT_EQ(1, count([&]() { memory = malloc(10); }));
    free(memory);
    EXPECT_LT(0, count([&]() { zeros(4); }));
}

TEST_F(WarmTest, RecordingTheSameProgramAgainDoesNotAllocate) {
    tile_array *x = active({1.1, 2}), *y = zeros(2), *m = reals(TILE_SHAPE(2, 1), {1, 2});
    tile_array *loss = zeros(1);
    tile_kernel *k = square(), *in_place = square_in_place();
    tile_status status = TILE_OK;
    const auto run = [&]() {
        for (int i = 0; i < 50 && !status; i++) {
            status = launch(k, x, y);
            if (!status) status = launch(in_place, y);
            if (!status) status = tape_fill(record, m, i);
            if (!status) status = tape_axpy(record, 2, x, y);
            if (!status) status = tape_dot(record, x, y, loss);
        }
    };
    for (int i = 0; i < 3; i++) {
        run();
        ASSERT_EQ(TILE_OK, status) << tile_last_error();
        ASSERT_EQ(TILE_OK, tape_reset(record));
    }
    EXPECT_EQ(0, count(run));
    ASSERT_EQ(TILE_OK, status) << tile_last_error();
}

TEST_F(WarmTest, LaunchesWithoutATapeDoNotAllocate) {
    tile_array *x = active({1.1, 2}), *y = zeros(2);
    tile_kernel *k = square();
    record = nullptr;
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    tile_status status = TILE_OK;
    EXPECT_EQ(0, count([&]() {
                  for (int i = 0; i < 50 && !status; i++) status = launch(k, x, y);
              }));
    ASSERT_EQ(TILE_OK, status) << tile_last_error();
}

TEST_F(WarmTest, ReplayingAndDifferentiatingAgainDoesNotAllocate) {
    tile_array *x = active({1.1, 2}), *y = zeros(2), *loss = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, launch(square_in_place(), y));
    ASSERT_EQ(TILE_OK, tape_sum(record, y, loss));
    tile_status replayed = TILE_OK, differentiated = TILE_OK;
    const auto replay = [&]() { replayed = tape_replay(record); };
    const auto differentiate = [&]() { differentiated = tape_backward(record, loss); };
    for (int i = 0; i < 3; i++) {
        replay();
        differentiate();
        ASSERT_EQ(TILE_OK, replayed) << tile_last_error();
        ASSERT_EQ(TILE_OK, differentiated) << tile_last_error();
    }
    EXPECT_EQ(0, count(replay));
    EXPECT_EQ(0, count(differentiate));
}

TEST_F(WarmTest, ReplayingWithNewInputsNeitherAllocatesNorGrows) {
    tile_array *x = active({1.1, 2}), *y = zeros(2), *loss = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, tape_sum(record, y, loss));
    double input[2] = {0, 1};
    tile_status status = TILE_OK;
    const auto iterate = [&]() {
        input[0] += 0.5;
        status = tile_array_write(x, input, sizeof input);
        if (!status) status = tape_replay(record);
        if (!status) status = tape_zero(record);
        if (!status) status = tape_backward(record, loss);
    };
    for (int i = 0; i < 3 && !status; i++) iterate();
    ASSERT_EQ(TILE_OK, status) << tile_last_error();
    const int64_t length = tape_length(record);
    const size_t bytes = tile_context_bytes(ctx);
    for (int i = 0; i < 20; i++) {
        EXPECT_EQ(0, count(iterate));
        ASSERT_EQ(TILE_OK, status) << tile_last_error();
        EXPECT_EQ(Reals({2 * input[0], 2}), grad(x));
    }
    EXPECT_EQ(length, tape_length(record));
    EXPECT_EQ(bytes, tile_context_bytes(ctx));
}

} // namespace
