/* fake_curand.cc: cuRAND's host functions: numbers that say what was asked for, and no random ones:
 * number k of seed s is (s + k % 64) / 128 or mean + deviation times that. */
#include <cstring>

#include "tests/fake_cuda/fake_memory.h"
#include "tests/fake_cuda/fake_state.h"

using namespace fake;

namespace {

constexpr int PHILOX = 161, TYPE_ERROR = 103, LENGTH_NOT_MULTIPLE = 105, LAUNCH_FAILURE = 201;

struct Generator {
    Stream *stream = nullptr;
    unsigned long long seed = 0, offset = 0;
};

template <typename T> int generate(void *generator, T *to, size_t count, T mean, T deviation) {
    Generator *g = static_cast<Generator *>(generator);
    const uint64_t at = reinterpret_cast<uint64_t>(to);
    if (!g->stream || !holds(at, count * sizeof(T))) return LAUNCH_FAILURE;
    const unsigned long long seed = g->seed, first = g->offset;
    g->offset += count;
    return give(g->stream, [=] {
        for (size_t k = 0; k < count; k++) {
            const T x = mean + deviation * static_cast<T>(seed + (first + k) % 64) / 128;
            std::memcpy(touch(at) + k * sizeof x, &x, sizeof x);
        }
        return int{SUCCESS};
    });
}

} // namespace

FAKE_API int curandCreateGenerator(void **generator, int kind) {
    FAKE_ENTER();
    if (kind != PHILOX) return TYPE_ERROR;
    *generator = new Generator;
    state().held++;
    return SUCCESS;
}

FAKE_API int curandDestroyGenerator(void *generator) {
    FAKE_ENTER();
    delete static_cast<Generator *>(generator);
    state().held--;
    return SUCCESS;
}

FAKE_API int curandSetStream(void *generator, void *stream) {
    FAKE_ENTER();
    static_cast<Generator *>(generator)->stream = static_cast<Stream *>(stream);
    return SUCCESS;
}

FAKE_API int curandSetPseudoRandomGeneratorSeed(void *generator, unsigned long long seed) {
    FAKE_ENTER();
    static_cast<Generator *>(generator)->seed = seed;
    return SUCCESS;
}

FAKE_API int curandSetGeneratorOffset(void *generator, unsigned long long offset) {
    FAKE_ENTER();
    static_cast<Generator *>(generator)->offset = offset;
    return SUCCESS;
}

FAKE_API int curandGenerateUniform(void *generator, float *to, size_t count) {
    FAKE_ENTER();
    return generate<float>(generator, to, count, 0, 1);
}

FAKE_API int curandGenerateUniformDouble(void *generator, double *to, size_t count) {
    FAKE_ENTER();
    return generate<double>(generator, to, count, 0, 1);
}

FAKE_API int curandGenerateNormal(void *generator, float *to, size_t count, float mean,
                                  float deviation) {
    FAKE_ENTER();
    return count % 2 ? LENGTH_NOT_MULTIPLE : generate(generator, to, count, mean, deviation);
}

FAKE_API int curandGenerateNormalDouble(void *generator, double *to, size_t count, double mean,
                                        double deviation) {
    FAKE_ENTER();
    return count % 2 ? LENGTH_NOT_MULTIPLE : generate(generator, to, count, mean, deviation);
}
