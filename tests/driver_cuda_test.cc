/* driver_cuda_test.cc: what cuda/driver.h and cuda/curand.c say of NVIDIA's libraries is what
 * NVIDIA's headers say. Needs the toolkit and no GPU: most of it is checked by the compiler. */
#include <cuda.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <type_traits>

#include "cuda/driver.h"

namespace {

/* Ours may stand for theirs: an enum or a CUdevice is an int, handles are pointers. */
template <typename Ours, typename Theirs> constexpr bool is_like() {
    if (std::is_pointer<Ours>::value) return std::is_pointer<Theirs>::value;
    const bool number = std::is_integral<Theirs>::value || std::is_enum<Theirs>::value;
    return number && std::is_integral<Ours>::value && sizeof(Ours) == sizeof(Theirs);
}

template <typename Ours, typename Theirs> struct Same { static constexpr bool value = false; };
template <typename... A, typename R, typename... B> struct Same<int (*)(A...), R (*)(B...)> {
    static constexpr bool call() {
        if constexpr (sizeof...(A) == sizeof...(B))
            return (is_like<A, B>() && ...);
        else
            return false;
    }
    static constexpr bool value = call();
};

/* The headers' names lead to the symbols that we look for: cuMemAlloc is cuMemAlloc_v2. */
#define SAME(field, function) \
    static_assert(Same<decltype(tile_driver::field), decltype(&function)>::value, #function)
SAME(init, cuInit);
SAME(version, cuDriverGetVersion);
SAME(device_count, cuDeviceGetCount);
SAME(device_get, cuDeviceGet);
SAME(device_name, cuDeviceGetName);
SAME(device_memory, cuDeviceTotalMem_v2);
SAME(device_attribute, cuDeviceGetAttribute);
SAME(context_retain, cuDevicePrimaryCtxRetain);
SAME(context_release, cuDevicePrimaryCtxRelease_v2);
SAME(context_push, cuCtxPushCurrent_v2);
SAME(context_pop, cuCtxPopCurrent_v2);
SAME(memory_info, cuMemGetInfo_v2);
SAME(stream_create, cuStreamCreate);
SAME(stream_destroy, cuStreamDestroy_v2);
SAME(stream_sync, cuStreamSynchronize);
SAME(capture_begin, cuStreamBeginCapture_v2);
SAME(capture_end, cuStreamEndCapture);
SAME(graph_instantiate, cuGraphInstantiateWithFlags);
SAME(graph_launch, cuGraphLaunch);
SAME(graph_exec_destroy, cuGraphExecDestroy);
SAME(graph_destroy, cuGraphDestroy);
SAME(alloc, cuMemAlloc_v2);
SAME(free, cuMemFree_v2);
SAME(alloc_async, cuMemAllocAsync);
SAME(free_async, cuMemFreeAsync);
SAME(alloc_host, cuMemAllocHost_v2);
SAME(free_host, cuMemFreeHost);
SAME(copy_in, cuMemcpyHtoDAsync_v2);
SAME(copy_out, cuMemcpyDtoHAsync_v2);
SAME(copy, cuMemcpyDtoDAsync_v2);
SAME(set8, cuMemsetD8Async);
SAME(set16, cuMemsetD16Async);
SAME(set32, cuMemsetD32Async);
SAME(set32_rows, cuMemsetD2D32Async);
SAME(pointer_attribute, cuPointerGetAttribute);
SAME(module_load, cuModuleLoadData);
SAME(module_unload, cuModuleUnload);
SAME(module_function, cuModuleGetFunction);
SAME(function_get, cuFuncGetAttribute);
SAME(function_set, cuFuncSetAttribute);
SAME(launch, cuLaunchKernel);
SAME(event_create, cuEventCreate);
SAME(event_record, cuEventRecord);
SAME(event_sync, cuEventSynchronize);
SAME(event_destroy, cuEventDestroy_v2);
SAME(error_name, cuGetErrorName);
SAME(error_text, cuGetErrorString);

static_assert(TILE_CU_INVALID_VALUE == static_cast<int>(CUDA_ERROR_INVALID_VALUE), "");
static_assert(TILE_CU_OUT_OF_MEMORY == static_cast<int>(CUDA_ERROR_OUT_OF_MEMORY), "");
static_assert(TILE_CU_NO_DEVICE == static_cast<int>(CUDA_ERROR_NO_DEVICE), "");
static_assert(TILE_CU_INVALID_IMAGE == static_cast<int>(CUDA_ERROR_INVALID_IMAGE), "");
static_assert(TILE_CU_NO_BINARY_FOR_GPU == static_cast<int>(CUDA_ERROR_NO_BINARY_FOR_GPU), "");
static_assert(TILE_CU_UNSUPPORTED_PTX == static_cast<int>(CUDA_ERROR_UNSUPPORTED_PTX_VERSION), "");
static_assert(TILE_CU_INVALID_SOURCE == static_cast<int>(CUDA_ERROR_INVALID_SOURCE), "");
static_assert(TILE_CU_NOT_FOUND == static_cast<int>(CUDA_ERROR_NOT_FOUND), "");
static_assert(TILE_CU_ATTRIBUTE_GRID_X == static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), "");
static_assert(TILE_CU_ATTRIBUTE_MAJOR ==
                  static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
              "");
static_assert(TILE_CU_ATTRIBUTE_MINOR ==
                  static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
              "");
static_assert(TILE_CU_ATTRIBUTE_SHARED_MOST ==
                  static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
              "");
static_assert(TILE_CU_ATTRIBUTE_POOLS ==
                  static_cast<int>(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED),
              "");
static_assert(TILE_CU_FUNC_THREADS == static_cast<int>(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
              "");
static_assert(TILE_CU_FUNC_SHARED == static_cast<int>(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), "");
static_assert(TILE_CU_FUNC_LOCAL == static_cast<int>(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), "");
static_assert(TILE_CU_FUNC_REGISTERS == static_cast<int>(CU_FUNC_ATTRIBUTE_NUM_REGS), "");
static_assert(TILE_CU_FUNC_BINARY == static_cast<int>(CU_FUNC_ATTRIBUTE_BINARY_VERSION), "");
static_assert(TILE_CU_FUNC_DYNAMIC_SHARED ==
                  static_cast<int>(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
              "");
static_assert(TILE_CU_POINTER_MEMORY_TYPE == static_cast<int>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE),
              "");
static_assert(TILE_CU_MEMORY_DEVICE == static_cast<int>(CU_MEMORYTYPE_DEVICE), "");
static_assert(TILE_CU_STREAM_NON_BLOCKING == static_cast<int>(CU_STREAM_NON_BLOCKING), "");
static_assert(TILE_CU_CAPTURE_RELAXED == static_cast<int>(CU_STREAM_CAPTURE_MODE_RELAXED), "");

TEST(DriverTest, KnowsWhichFailuresLoseAContext) {
    for (CUresult lost :
         {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_FAILED,
          CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_INVALID_PC,
          CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_ASSERT,
          CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_UNKNOWN})
        EXPECT_TRUE(tile_driver_is_lost(lost)) << lost;
    for (CUresult usable : {CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE,
                            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_INVALID_IMAGE,
                            CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED})
        EXPECT_FALSE(tile_driver_is_lost(usable)) << usable;
}

/* The toolkit's stand-in for libcuda has each function that is looked for, and no device. */
TEST(DriverTest, FindsEveryFunctionByItsName) {
    const char *home = std::getenv("CUDA_HOME");
    const std::string stub = std::string(home ? home : "") + "/lib64/stubs/libcuda.so";
    if (access(stub.c_str(), R_OK)) GTEST_SKIP() << "the toolkit has no stubs";
    const tile_driver *driver;
    tile_driver_look_in(stub.c_str());
    EXPECT_EQ(TILE_E_DEVICE, tile_driver_get(&driver));
    const std::string said = tile_last_error();
    EXPECT_EQ(0u, said.find("no CUDA device: ")) << said;
    EXPECT_NE(std::string::npos, said.find(", 34)")) << said;
    tile_driver_look_in(nullptr);
}

} // namespace
