/* fake_driver.cc: libcuda, as far as the library uses it. */
#include <chrono>
#include <cstdio>
#include <cstring>

#include "tests/emulator/emulator.h"
#include "tests/fake_cuda/fake_memory.h"
#include "tests/fake_cuda/fake_state.h"

namespace fake {
extern thread_local int current_contexts;
}

using namespace fake;

namespace {

int64_t setting(const char *what) {
    return state().setting[what];
}

/* Pinned memory, by address: what is copied from it is read late. */
std::map<const void *, size_t> pinned;

bool is_pinned(const void *at) {
    auto found = pinned.upper_bound(at);
    if (found == pinned.begin()) return false;
    --found;
    return static_cast<const char *>(at) < static_cast<const char *>(found->first) + found->second;
}

struct Function {
    void *kernel;
    int shared_most = 48 << 10;
};

struct Event {
    Stream *stream = nullptr;
    std::chrono::steady_clock::time_point time;
};

struct Module {
    std::string name;
    Function function;
};

int warn(const std::string &wrong) {
    if (wrong.empty()) return SUCCESS;
    std::fprintf(stderr, "fake CUDA: %s\n", wrong.c_str());
    return LAUNCH_FAILED;
}

} // namespace

/* Devices and contexts */

FAKE_API int cuInit(unsigned) {
    FAKE_ENTER(false);
    return setting("devices") ? SUCCESS : NO_DEVICE;
}

FAKE_API int cuDriverGetVersion(int *version) {
    FAKE_ENTER(false);
    *version = static_cast<int>(setting("version"));
    return SUCCESS;
}

FAKE_API int cuDeviceGetCount(int *count) {
    FAKE_ENTER(false);
    *count = static_cast<int>(setting("devices"));
    return SUCCESS;
}

FAKE_API int cuDeviceGet(int *device, int number) {
    FAKE_ENTER(false);
    if (number < 0 || number >= setting("devices")) return INVALID_DEVICE;
    *device = number;
    return SUCCESS;
}

FAKE_API int cuDeviceGetName(char *name, int room, int) {
    FAKE_ENTER(false);
    std::snprintf(name, static_cast<size_t>(room), "Fake CUDA device");
    return SUCCESS;
}

FAKE_API int cuDeviceTotalMem_v2(size_t *bytes, int) {
    FAKE_ENTER(false);
    *bytes = static_cast<size_t>(setting("memory"));
    return SUCCESS;
}

FAKE_API int cuDeviceGetAttribute(int *value, int attribute, int) {
    FAKE_ENTER(false);
    switch (attribute) {
    case 5: *value = 2147483647; return SUCCESS;
    case 75: *value = static_cast<int>(setting("major")); return SUCCESS;
    case 76: *value = static_cast<int>(setting("minor")); return SUCCESS;
    case 97: *value = 227 << 10; return SUCCESS;
    case 115: *value = static_cast<int>(setting("pools")); return SUCCESS;
    default: return INVALID_VALUE;
    }
}

FAKE_API int cuDevicePrimaryCtxRetain(void **context, int) {
    FAKE_ENTER(false);
    *context = &state();
    state().held++;
    return SUCCESS;
}

FAKE_API int cuDevicePrimaryCtxRelease_v2(int) {
    FAKE_ENTER(false);
    state().held--;
    return SUCCESS;
}

FAKE_API int cuCtxPushCurrent_v2(void *) {
    FAKE_ENTER(false);
    current_contexts++;
    return SUCCESS;
}

FAKE_API int cuCtxPopCurrent_v2(void **) {
    FAKE_ENTER(false);
    if (current_contexts == 0) return INVALID_CONTEXT;
    current_contexts--;
    return SUCCESS;
}

/* Streams, events, graphs */

FAKE_API int cuStreamCreate(void **stream, unsigned) {
    FAKE_ENTER();
    *stream = new Stream;
    state().held++;
    return SUCCESS;
}

FAKE_API int cuStreamDestroy_v2(void *stream) {
    FAKE_ENTER();
    Stream *s = static_cast<Stream *>(stream);
    const int result = finish(s);
    delete s;
    state().held--;
    return result;
}

FAKE_API int cuStreamSynchronize(void *stream) {
    FAKE_ENTER();
    if (static_cast<Stream *>(stream)->capturing) return CAPTURE_INVALIDATED;
    return finish(static_cast<Stream *>(stream));
}

FAKE_API int cuStreamBeginCapture_v2(void *stream, int) {
    FAKE_ENTER();
    Stream *s = static_cast<Stream *>(stream);
    if (s->capturing) return INVALID_VALUE;
    s->capturing = true;
    return SUCCESS;
}

FAKE_API int cuStreamEndCapture(void *stream, void **graph) {
    Stream *s = static_cast<Stream *>(stream);
    std::vector<Work> work;
    std::swap(work, s->captured.work);
    s->capturing = false; /* also when it fails */
    *graph = nullptr;
    FAKE_ENTER();
    *graph = new Graph{work};
    state().held++;
    return SUCCESS;
}

FAKE_API int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long) {
    FAKE_ENTER();
    *exec = new Graph(*static_cast<Graph *>(graph));
    state().held++;
    return SUCCESS;
}

FAKE_API int cuGraphLaunch(void *exec, void *stream) {
    FAKE_ENTER();
    const std::vector<Work> work = static_cast<Graph *>(exec)->work;
    return give(static_cast<Stream *>(stream), [work] {
        int result = SUCCESS;
        for (size_t k = 0; k < work.size() && !result; k++) result = work[k]();
        return result;
    });
}

FAKE_API int cuGraphExecDestroy(void *exec) {
    FAKE_ENTER();
    delete static_cast<Graph *>(exec);
    state().held--;
    return SUCCESS;
}

FAKE_API int cuGraphDestroy(void *graph) {
    FAKE_ENTER();
    delete static_cast<Graph *>(graph);
    state().held--;
    return SUCCESS;
}

FAKE_API int cuEventCreate(void **event, unsigned) {
    FAKE_ENTER();
    *event = new Event;
    state().held++;
    return SUCCESS;
}

FAKE_API int cuEventRecord(void *event, void *stream) {
    FAKE_ENTER();
    Event *e = static_cast<Event *>(event);
    e->stream = static_cast<Stream *>(stream);
    return give(e->stream, [e] {
        e->time = std::chrono::steady_clock::now();
        return SUCCESS;
    });
}

FAKE_API int cuEventSynchronize(void *event) {
    FAKE_ENTER();
    Stream *s = static_cast<Event *>(event)->stream;
    return s ? finish(s) : SUCCESS;
}

FAKE_API int cuEventElapsedTime(float *milliseconds, void *from, void *to) {
    FAKE_ENTER();
    const auto passed = static_cast<Event *>(to)->time - static_cast<Event *>(from)->time;
    *milliseconds = std::chrono::duration<float, std::milli>(passed).count();
    return SUCCESS;
}

FAKE_API int cuEventDestroy_v2(void *event) {
    FAKE_ENTER();
    delete static_cast<Event *>(event);
    state().held--;
    return SUCCESS;
}

/* Memory */

FAKE_API int cuMemGetInfo_v2(size_t *unused, size_t *all) {
    FAKE_ENTER();
    *all = static_cast<size_t>(setting("memory"));
    *unused = *all - used();
    return SUCCESS;
}

FAKE_API int cuMemAlloc_v2(uint64_t *memory, size_t bytes) {
    FAKE_ENTER();
    *memory = allocate(bytes, static_cast<size_t>(setting("memory")));
    return *memory ? SUCCESS : OUT_OF_MEMORY;
}

FAKE_API int cuMemFree_v2(uint64_t memory) {
    FAKE_ENTER();
    return warn(release(memory));
}

FAKE_API int cuMemAllocAsync(uint64_t *memory, size_t bytes, void *stream) {
    FAKE_ENTER();
    if (static_cast<Stream *>(stream)->capturing) return CAPTURE_INVALIDATED;
    *memory = allocate(bytes, static_cast<size_t>(setting("memory")));
    return *memory ? SUCCESS : OUT_OF_MEMORY;
}

FAKE_API int cuMemFreeAsync(uint64_t memory, void *stream) {
    FAKE_ENTER();
    if (!holds(memory, 0)) return INVALID_VALUE;
    return give(static_cast<Stream *>(stream), [memory] { return warn(release(memory)); });
}

FAKE_API int cuMemAllocHost_v2(void **memory, size_t bytes) {
    FAKE_ENTER();
    *memory = new unsigned char[bytes];
    pinned[*memory] = bytes;
    state().held++;
    return SUCCESS;
}

FAKE_API int cuMemFreeHost(void *memory) {
    FAKE_ENTER();
    pinned.erase(memory);
    delete[] static_cast<unsigned char *>(memory);
    state().held--;
    return SUCCESS;
}

/* Host memory that is not pinned is read before the call returns. */
FAKE_API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    FAKE_ENTER();
    if (!holds(to, bytes)) return INVALID_VALUE;
    if (static_cast<Stream *>(stream)->capturing) return CAPTURE_INVALIDATED;
    if (is_pinned(from))
        return give(static_cast<Stream *>(stream), [to, from, bytes] {
            std::memcpy(touch(to), from, bytes);
            return SUCCESS;
        });
    const std::string copy(static_cast<const char *>(from), bytes);
    return give(static_cast<Stream *>(stream), [to, copy] {
        std::memcpy(touch(to), copy.data(), copy.size());
        return SUCCESS;
    });
}

FAKE_API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    FAKE_ENTER();
    if (!holds(from, bytes)) return INVALID_VALUE;
    if (static_cast<Stream *>(stream)->capturing) return CAPTURE_INVALIDATED;
    return give(static_cast<Stream *>(stream), [to, from, bytes] {
        std::memcpy(to, touch(from), bytes);
        return SUCCESS;
    });
}

FAKE_API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    FAKE_ENTER();
    if (!holds(to, bytes) || !holds(from, bytes)) return INVALID_VALUE;
    return give(static_cast<Stream *>(stream), [to, from, bytes] {
        std::memmove(touch(to), touch(from), bytes);
        return SUCCESS;
    });
}

namespace {

/* Elements pitch bytes apart. */
template <typename T> int set(uint64_t to, size_t pitch, T value, size_t count, void *stream) {
    if (count && !holds(to, (count - 1) * pitch + sizeof value)) return INVALID_VALUE;
    if (to % sizeof value) return INVALID_VALUE;
    return give(static_cast<Stream *>(stream), [=] {
        for (size_t k = 0; k < count; k++) std::memcpy(touch(to) + k * pitch, &value, sizeof value);
        return SUCCESS;
    });
}

} // namespace

FAKE_API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream) {
    FAKE_ENTER();
    return set(to, 1, value, count, stream);
}

FAKE_API int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void *stream) {
    FAKE_ENTER();
    return set(to, 2, value, count, stream);
}

FAKE_API int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
    FAKE_ENTER();
    return set(to, 4, value, count, stream);
}

FAKE_API int cuMemsetD2D32Async(uint64_t to, size_t pitch, unsigned value, size_t width,
                                size_t height, void *stream) {
    FAKE_ENTER();
    if (width != 1) return INVALID_VALUE;
    return set(to, pitch, value, height, stream);
}

FAKE_API int cuPointerGetAttribute(void *to, int attribute, uint64_t at) {
    FAKE_ENTER();
    if (attribute != 2 || !holds(at, 1)) return INVALID_VALUE;
    const unsigned kind = 2;
    std::memcpy(to, &kind, sizeof kind);
    return SUCCESS;
}

/* Kernels */

/* "FAKE", the kernel's name, its text. */
FAKE_API int cuModuleLoadData(void **module, const void *image) {
    FAKE_ENTER();
    const std::string all(static_cast<const char *>(image)), magic = "FAKE\n";
    const size_t end = all.find('\n', magic.size());
    if (all.compare(0, magic.size(), magic) != 0 || end == std::string::npos) return INVALID_IMAGE;
    const std::string name = all.substr(magic.size(), end - magic.size());
    const std::string type = "tile_" + name.substr(sizeof "tile_kernel_" - 1) + "::argument";
    Module *made = new Module;
    made->name = name;
    const std::string wrong =
        emulator::compile(name, type, all.substr(end + 1), &made->function.kernel);
    if (!wrong.empty()) {
        delete made;
        return INVALID_IMAGE;
    }
    *module = made;
    state().held++;
    return SUCCESS;
}

FAKE_API int cuModuleUnload(void *module) {
    FAKE_ENTER();
    delete static_cast<Module *>(module);
    state().held--;
    return SUCCESS;
}

FAKE_API int cuModuleGetFunction(void **function, void *module, const char *name) {
    FAKE_ENTER();
    Module *m = static_cast<Module *>(module);
    if (m->name != name) return NOT_FOUND;
    *function = &m->function;
    return SUCCESS;
}

namespace {

int threads_most() {
    return emulator::from_environment().threads;
}

} // namespace

FAKE_API int cuFuncGetAttribute(int *value, int attribute, void *function) {
    FAKE_ENTER();
    switch (attribute) {
    case 0: *value = threads_most(); return SUCCESS;
    case 1: *value = 0; return SUCCESS;
    case 3: *value = 16; return SUCCESS;
    case 4: *value = 40; return SUCCESS;
    case 6: *value = 90; return SUCCESS;
    case 8: *value = static_cast<Function *>(function)->shared_most; return SUCCESS;
    default: return INVALID_VALUE;
    }
}

FAKE_API int cuFuncSetAttribute(void *function, int attribute, int value) {
    FAKE_ENTER();
    if (attribute != 8 || value < 0 || value > 227 << 10) return INVALID_VALUE;
    static_cast<Function *>(function)->shared_most = value;
    return SUCCESS;
}

FAKE_API int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                            unsigned threads_y, unsigned threads_z, unsigned shared, void *stream,
                            void **parameters, void **extra) {
    FAKE_ENTER();
    const Function *f = static_cast<const Function *>(function);
    if (x < 1 || x > 2147483647u || y != 1 || z != 1 || threads_y != 1 || threads_z != 1)
        return INVALID_VALUE;
    if (threads < 1 || static_cast<int>(threads) > threads_most() || extra) return INVALID_VALUE;
    if (static_cast<int>(shared) > f->shared_most) return INVALID_VALUE;
    const std::string argument(static_cast<const char *>(parameters[0]),
                               emulator::argument_bytes(f->kernel));
    void *kernel = f->kernel;
    return give(static_cast<Stream *>(stream), [=] {
        std::vector<uint64_t> aligned(argument.size() / 8 + 1);
        std::memcpy(aligned.data(), argument.data(), argument.size());
        return run_kernel(kernel, aligned.data(), x, shared, static_cast<int>(threads));
    });
}

/* Texts */

FAKE_API int cuGetErrorName(int result, const char **text) {
    FAKE_ENTER(false);
    const std::map<int, const char *> names = {{OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                                               {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
                                               {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}};
    const auto found = names.find(result);
    *text = found == names.end() ? "CUDA_ERROR_OF_THE_FAKE" : found->second;
    return SUCCESS;
}

FAKE_API int cuGetErrorString(int result, const char **text) {
    FAKE_ENTER(false);
    const std::map<int, const char *> texts = {{OUT_OF_MEMORY, "out of memory"},
                                               {NO_DEVICE, "no CUDA-capable device is detected"},
                                               {LAUNCH_FAILED, "unspecified launch failure"}};
    const auto found = texts.find(result);
    *text = found == texts.end() ? "what the fake was told" : found->second;
    return SUCCESS;
}
