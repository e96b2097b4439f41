/* cuda_fixture.cc: has contexts made on a CUDA device where the environment says so. */
#include "tests/cuda_fixture.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cuda/cuda_device.h"
#include "cuda/driver.h"
#include "cuda/nvrtc.h"

namespace {

const char *library() {
    const char *given = std::getenv("TILE_FAKE_CUDA");
    return given ? given : "tests/fake_cuda/libfake_cuda.so";
}

template <typename F> void find(void *handle, const char *name, F *to) {
    *to = reinterpret_cast<F>(dlsym(handle, name));
    if (*to) return;
    std::fprintf(stderr, "%s lacks %s\n", library(), name);
    std::exit(1);
}

bool says(const char *name, const char *value) {
    const char *text = std::getenv(name);
    return text && std::string(text) == value;
}

tile_status make(tile_device **device) {
    return tile_cuda_device_create(0, device);
}

/* Before any test makes a context. */
const bool chosen = [] {
    if (!tests_run_on_cuda()) return false;
    if (says("TILE_TEST_CUDA", "fake")) use_fake_cuda();
    make_cuda_contexts(true);
    return true;
}();

} // namespace

void make_cuda_contexts(bool on) {
    tile_device_make_with(on ? make : nullptr);
}

const char *fake_cuda_library() {
    return library();
}

const FakeCuda *use_fake_cuda() {
    static const FakeCuda *fake = [] {
        void *handle = dlopen(library(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            std::fprintf(stderr, "%s\n", dlerror());
            std::exit(1);
        }
        FakeCuda *made = new FakeCuda;
        find(handle, "fake_cuda_fail", &made->fail);
        find(handle, "fake_cuda_calls", &made->calls);
        find(handle, "fake_cuda_set", &made->set);
        find(handle, "fake_cuda_held", &made->held);
        find(handle, "fake_cuda_inside", &made->inside);
        tile_driver_look_in(library());
        tile_nvrtc_look_in(library());
        tile_curand_look_in(library());
        return made;
    }();
    return fake;
}

bool tests_run_on_cuda() {
    return says("TILE_TEST_DEVICE", "cuda");
}
