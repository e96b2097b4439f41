/* nvrtc_cuda_test.cc: generated kernels compiled to cubins; needs the toolkit and no GPU. A device
 * that only keeps texts takes the kernels of tests and examples, forward and adjoint.
 *
 * Here one problem of every fourth op, the golden programs, wave and Burgers: nvcc has built every
 * op's lane function. TILE_NVRTC_ALL=1 in the environment: all problems of the op suite, in all
 * types, and all golden folders. */
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "benchmarks/burgers_kernel.h"
#include "benchmarks/wave_kernel.h"
#include "cuda/nvrtc.h"
#include "tests/collect_device.h"
#include "tests/golden_runner.h"
#include "tests/op_run.h"

namespace {

enum { KERNELS_AT_ONCE = 64, OPS_STEP = 4 };

/* Contexts of this process give their kernels here. */
CollectDevice *collect() {
    static CollectDevice *device = [] {
        CollectDevice *made = new CollectDevice;
        tile_device_use(&made->device);
        return made;
    }();
    device->text.clear();
    device->families = 0;
    return device;
}

bool everything() {
    const char *text = std::getenv("TILE_NVRTC_ALL");
    return text && *text == '1';
}

/* Every kernel of a device, many in one source. */
void compile_all(const CollectDevice &device, size_t least, const char *arch = "sm_90") {
    EXPECT_GE(device.text.size(), least);
    for (size_t k = 0; k < device.text.size(); k += KERNELS_AT_ONCE) {
        tile_cubin cubin;
        const std::string source = device.source(k, KERNELS_AT_ONCE);
        ASSERT_EQ(TILE_OK, tile_nvrtc_compile(source.c_str(), "source", arch, &cubin))
            << tile_last_error();
        ASSERT_GT(cubin.bytes, 64u);
        EXPECT_EQ(0, std::memcmp(cubin.data, "\177ELF", 4));
        tile_cubin_clear(&cubin);
    }
    std::printf("%zu kernels\n", device.text.size());
}

void launch_all(const std::vector<op_test::Problem> &problems, tile_dtype real) {
    /* One in the middle is neither a single element nor large. */
    for (size_t k = everything() ? 0 : problems.size() / 2; k < problems.size(); k++) {
        op_test::Run run(problems[k], real, op_test::Place::kOwned, 1);
        if (run.error().empty()) (void)run.backward(op_test::upstream_of(problems[k]));
        if (!everything()) break;
    }
}

TEST(NvrtcTest, CompilesTheKernelsOfOps) {
    CollectDevice *device = collect();
    const tile_op *op;
    for (int i = 0; (op = tile_op_at(i)) != nullptr; i++) {
        const size_t before = device->text.size();
        if (!everything() && i % OPS_STEP) continue;
        launch_all(op_test::problems_of(op), TILE_F64);
        if (everything()) {
            launch_all(op_test::special_problems_of(op), TILE_F64);
            launch_all(op_test::large_problems_of(op), TILE_F64);
            for (tile_dtype real : {TILE_F32, TILE_F16, TILE_BF16, TILE_I32, TILE_I64, TILE_U8})
                launch_all(op_test::problems_of(op), real);
        }
        EXPECT_GT(device->text.size(), before) << op->name;
    }
    compile_all(*device, everything() ? 150 : 30);
}

TEST(NvrtcTest, CompilesTheGoldenPrograms) {
    CollectDevice *device = collect();
    FILE *nowhere = std::fopen("/dev/null", "w");
    for (const char *folder : {"programs", "indexed", "partition", "ops"}) {
        if (!everything() && std::strcmp(folder, "programs") != 0) continue;
        (void)golden::run_folder(std::string("tests/data/golden/") + folder, nowhere);
    }
    std::fclose(nowhere);
    compile_all(*device, everything() ? 150 : 20);
}

/* A launch and its gradient, for the kernels that it takes. */
void sweep(tile_context *ctx, tile_kernel *kernel, int arrays, std::vector<tile_arg> scalars) {
    std::vector<tile_array *> array;
    std::vector<tile_arg> args;
    for (int k = 0; k < arrays; k++) {
        array.push_back(nullptr);
        ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(64, 64), &array.back()));
        ASSERT_EQ(TILE_OK, tile_array_request_grad(array.back()));
        args.push_back(tile_arg_array(array.back()));
    }
    args.insert(args.end(), scalars.begin(), scalars.end());
    tape *record;
    ASSERT_EQ(TILE_OK, tape_create(ctx, nullptr, &record));
    ASSERT_EQ(TILE_OK, tile_launch(record, kernel, TILE_GRID(2, 1),
                                   {static_cast<int>(args.size()), args.data()}));
    tile_array *seed;
    ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(64, 64), &seed));
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &array.back(), &seed)) << tile_last_error();
    tape_destroy(record);
    tile_array_destroy(seed);
    for (tile_array *a : array) tile_array_destroy(a);
}

TEST(NvrtcTest, CompilesWaveAndBurgers) {
    CollectDevice *device = collect();
    tile_context *ctx;
    tile_kernel *kernel;
    ASSERT_EQ(TILE_OK, tile_context_create(nullptr, &ctx));
    ASSERT_EQ(TILE_OK, burgers_kernel_build(ctx, TILE_F32, 32, 64, &kernel)) << tile_last_error();
    sweep(ctx, kernel, 4, {tile_arg_real(0.1), tile_arg_real(0.2)});
    tile_kernel_destroy(kernel);
    ASSERT_EQ(TILE_OK, wave_kernel_build(ctx, TILE_F32, 32, 64, &kernel)) << tile_last_error();
    sweep(ctx, kernel, 5, {tile_arg_real(0.5)});
    tile_kernel_destroy(kernel);
    tile_context_destroy(ctx);
    for (const char *arch : {"sm_75", "sm_80", "sm_90", "sm_100"}) compile_all(*device, 4, arch);
}

TEST(NvrtcTest, NamesLineAndOpOfAnError) {
    tile_cubin cubin;
    EXPECT_EQ(TILE_E_DEVICE, tile_nvrtc_compile("static __device__ int one() { return 1; }\n"
                                                "    const float v5 = add_f32(v3, v4);\n",
                                                "source", "sm_90", &cubin));
    const std::string said = tile_last_error();
    EXPECT_EQ(0u, said.find("NVRTC: line 2: error: ")) << said;
    EXPECT_NE(std::string::npos, said.find(": const float v5 = add_f32(v3, v4);")) << said;
    EXPECT_EQ(nullptr, cubin.data);
}

TEST(NvrtcTest, RefusesAnUnknownArchitecture) {
    tile_cubin cubin;
    EXPECT_EQ(TILE_E_DEVICE, tile_nvrtc_compile("__device__ int x;", "source", "sm_7", &cubin));
    EXPECT_NE(std::string::npos, std::string(tile_last_error()).find("NVRTC: ")) << "sm_7";
}

TEST(NvrtcTest, SaysWhenThereIsNoNvrtc) {
    tile_cubin cubin;
    tile_nvrtc_look_in("/nowhere/libnvrtc.so");
    EXPECT_EQ(TILE_E_DEVICE, tile_nvrtc_compile("__device__ int x;", "source", "sm_90", &cubin));
    EXPECT_STREQ("NVRTC: /nowhere/libnvrtc.so not found (CUDA_HOME/lib64, the system's libraries, "
                 "/usr/local/cuda)",
                 tile_last_error());
    tile_nvrtc_look_in(nullptr);
    ASSERT_EQ(TILE_OK, tile_nvrtc_compile("__device__ int x;", "source", "sm_90", &cubin))
        << tile_last_error();
    tile_cubin_clear(&cubin);
}

} // namespace
