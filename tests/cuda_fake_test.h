/* cuda_fake_test.h: a fixture whose contexts are on the fake CUDA device. */
#ifndef TILE_TESTS_CUDA_FAKE_TEST_H
#define TILE_TESTS_CUDA_FAKE_TEST_H

#include <dirent.h>

#include <string>

#include "tests/cuda_fixture.h"
#include "tests/tape_fixture.h"

/* Before the fixture's context is made, and after it is gone. */
struct OnFakeCuda {
    OnFakeCuda() : fake(use_fake_cuda()) {
        fake->fail(nullptr, 0, 0);
        make_cuda_contexts(true);
    }
    ~OnFakeCuda() {
        fake->fail(nullptr, 0, 0);
        make_cuda_contexts(tests_run_on_cuda());
    }
    const FakeCuda *fake;
};

class CudaTest : protected OnFakeCuda, public TapeTest {
  protected:
    explicit CudaTest(bool check = false) : TapeTest(1, check) {
        const char *cache = getenv("XDG_CACHE_HOME");
        if (cache) cache_ = cache;
    }
    ~CudaTest() override {
        if (cache_.empty())
            unsetenv("XDG_CACHE_HOME");
        else
            setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
    }

    /* A new folder for compiled code, by a name of the test's; its path. */
    static std::string set_cache(const char *name) {
        const char *own = getenv("TEST_TMPDIR");
        std::string folder = std::string(own ? own : "/tmp") + "/cache-XXXXXX";
        EXPECT_NE(nullptr, mkdtemp(&folder[0])) << (name ? name : "");
        EXPECT_EQ(0, setenv("XDG_CACHE_HOME", folder.c_str(), 1));
        return folder + "/tiletape";
    }
    static std::string only_entry(const std::string &folder) {
        std::string found;
        DIR *listed = opendir(folder.c_str());
        EXPECT_NE(nullptr, listed);
        while (const dirent *d = listed ? readdir(listed) : nullptr) {
            if (d->d_name[0] == '.') continue;
            EXPECT_EQ("", found);
            found = folder + "/" + d->d_name;
        }
        if (listed) closedir(listed);
        EXPECT_NE("", found);
        return found;
    }
    /* A context of its own runs a kernel; "N compiled, N reused: why not kept". */
    std::string use_square() {
        tile_context *other = nullptr;
        EXPECT_EQ(TILE_OK, tile_cuda_context_create(0, nullptr, &other));
        std::swap(ctx, other);
        tile_array *x = reals({1, 2, 3}), *y = zeros(3);
        EXPECT_EQ(TILE_OK, tile_launch(nullptr, square(), grid_for(x), TILE_ARGS(x, y)))
            << tile_last_error();
        EXPECT_EQ(Reals({1, 4, 9}), read(y));
        std::swap(ctx, other);
        tile_executor_info info;
        EXPECT_EQ(TILE_OK, tile_context_info(other, &info));
        tile_context_destroy(other);
        return std::to_string(info.compiled) + " compiled, " + std::to_string(info.reused) +
               " reused: " + info.why;
    }

  private:
    std::string cache_;
};

class CheckedCudaTest : public CudaTest {
  protected:
    CheckedCudaTest() : CudaTest(true) {}
};

#endif
