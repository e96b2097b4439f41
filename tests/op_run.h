/* op_run.h: a problem's kernel and arrays on a context, launched forward and swept backward. */
#ifndef TILE_TESTS_OP_RUN_H
#define TILE_TESTS_OP_RUN_H

#include <memory>

#include "tests/op_problem.h"

namespace op_test {

/* Where the elements of an array lie. kOwned: the library's memory. The others are memory of the
 * test's, wrapped: in C order, with gaps, with dimensions in reverse order and gaps. Everything
 * around and between the elements is guarded. */
enum class Place { kOwned, kDense, kGaps, kReversed };

/* What is random besides the problem's values. */
struct Upstream {
    std::vector<Reals> seed;  /* of each field that is written; else empty */
    std::vector<Reals> start; /* of each gradient */
};
enum class Seeds { kNormal, kZero, kPositive };
Upstream upstream_of(const Problem &p, Seeds seeds = Seeds::kNormal);

/* Whether a run asks for the field's gradient. */
bool has_gradient(const Field &f);

/* What a run leaves. error: the first call that failed. */
struct Outcome {
    tile_status status = TILE_OK;
    bool launched = false;
    std::string error; /* also: a guard that was overwritten, an input that changed */
    std::vector<Reals> value, grad;
};

/* A context with a number of threads and an executor, made once. */
tile_context *context_of(int threads, tile_executor executor = TILE_EXECUTOR_AUTO);

class Run {
  public:
    Run(const Problem &p, tile_dtype real, Place place, int threads,
        tile_executor executor = TILE_EXECUTOR_AUTO);
    ~Run();
    Run(const Run &) = delete;
    Run &operator=(const Run &) = delete;

    /* Launches without a tape, from the problem's values. */
    Outcome forward();
    /* Launches on a tape and sweeps. fail: which allocation, from the tape's creation on, fails;
     * 0: none. */
    Outcome backward(const Upstream &up, int64_t fail = 0);

    /* For differences, on kDense: one element of an input; sum of seed * value after a launch. */
    void set(size_t field, size_t i, double x);
    double loss(const Upstream &up, double *magnitude);
    const std::string &error() const {
        return error_;
    }

  private:
    struct Memory {
        std::vector<unsigned char> bytes, before;
        size_t first = 0;            /* byte of element 0 */
        std::vector<size_t> at;      /* byte of each element, in C order; kOwned: empty */
        tile_array *there = nullptr; /* the same bytes in a device's memory; else NULL */
    };
    bool note(tile_status status);
    void place(size_t k);
    void reset(size_t k);
    void upload(size_t k);
    void download(size_t k);
    void check_guards();
    std::vector<tile_arg> args() const;
    Reals read(tile_array *array);
    void write(tile_array *array, const Reals &value);
    Outcome finish();

    const Problem &p_;
    tile_dtype real_;
    Place place_;
    tile_context *ctx_;
    tile_kernel *kernel_ = nullptr;
    std::vector<tile_array *> array_;
    std::vector<Memory> memory_;
    tile_status status_ = TILE_OK;
    std::string error_;
};

/* The dtype of a field in a run. */
tile_dtype dtype_in(const Field &f, tile_dtype real);

} // namespace op_test

#endif
