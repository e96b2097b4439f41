/* golden_runner.h: cases of a folder of known answers (format ops, indexed, programs,
 * partition), run against
 * the library through its public interface. */
#ifndef TILE_TESTS_GOLDEN_RUNNER_H
#define TILE_TESTS_GOLDEN_RUNNER_H

#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tape/tiletape.h"

namespace golden {

using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

/* What becomes of a case: thrown by whoever runs it. */
struct Skipped : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct Failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* Throws Failed when a call of the library failed. */
void must(tile_status status);

/* A line of cases.txt. */
class Case {
  public:
    Case(const std::string &format, const std::string &folder, const std::string &line);
    const std::string &format() const {
        return format_;
    }
    const std::string &name() const {
        return name_;
    }
    bool has(const std::string &key) const {
        return field_.count(key) != 0;
    }
    /* Failed when the line lacks the key. */
    const std::string &text(const std::string &key) const;
    double real(const std::string &key) const;
    int64_t integer(const std::string &key) const;
    Ints integers(const std::string &key) const; /* "2,3"; "-" is empty */
    std::vector<std::string> words(const std::string &key) const;
    /* A file of the case's own folder; a file by its path below the folder of cases.txt. */
    std::string file(const std::string &name) const {
        return path(name_ + "/" + name);
    }
    std::string path(const std::string &below) const {
        return folder_ + "/" + below;
    }
    bool has_file(const std::string &name) const;

  private:
    std::string format_, folder_, name_;
    std::map<std::string, std::string> field_;
};

/* The cases of a folder, in order. Throws Failed for a folder that is none. */
std::vector<Case> read_cases(const std::string &folder);

/* Runs a case. Returns when it passes; throws Skipped (names what does not exist yet) or Failed. */
void run_case(const Case &c);
void run_ops_case(const Case &c);
void run_indexed_case(const Case &c);
void run_stack_case(const Case &c);
void run_program_case(const Case &c);
void run_partition_case(const Case &c);

/* Runs all cases of a folder, prints a line for each that fails or is skipped, then the counts.
 * Returns 0 when none failed. */
int run_folder(const std::string &folder, FILE *out);

/* The contents of an array. Integers beyond 2^53 keep their bits in bytes. */
struct Values {
    tile_dtype dtype = TILE_F64;
    Ints shape;
    std::vector<unsigned char> bytes;
    Reals real;
};

/* Owns a context, a tape, and what is made on them. */
class Bench {
  public:
    explicit Bench(bool check = false);
    ~Bench();
    Bench(const Bench &) = delete;
    Bench &operator=(const Bench &) = delete;

    tile_context *ctx = nullptr;
    tape *record = nullptr;

    tile_array *load(const std::string &path);
    /* The same; of bits in uint16 a bfloat16 array where that is the dtype of the case. */
    tile_array *load_as(tile_dtype dtype, const std::string &path);
    tile_array *zeros(tile_dtype dtype, const Ints &shape);
    tile_array *field(tile_array *array, const char *name); /* of an array of structs */
    tile_array *strided(tile_array *base, int64_t offset, const Ints &shape, const Ints &strides);
    /* A kernel made by build, which gets the builder. */
    tile_kernel *kernel(const std::string &name, const std::function<void(tile_builder *)> &build);
    tile_status try_kernel(const std::string &name,
                           const std::function<void(tile_builder *)> &build, tile_kernel **kernel);
    static Values read(tile_array *array);
    static Values gradient(tile_array *array);

  private:
    std::vector<tile_array *> array_;
    std::vector<tile_kernel *> kernel_;
};

tile_shape shape_of(const Ints &extents);
std::string shape_text(const Ints &extents);

/* Throws Failed, naming what, on the first difference. */

/* Within rtol of the largest finite entry of want; 0: bit for bit. Integers are equal. */
void compare_relative(const std::string &what, const Values &got, const Values &want, double rtol);

/* |got - want| <= tol * (1 + |want|); 0: equal, -0 equals 0 and NaN equals NaN. */
void compare_mixed(const std::string &what, const Values &got, const Values &want, double tol);

/* Within ulps of float64, or absolutely; where the bit of check is set. */
struct UlpLimit {
    double ulps, absolute;
    bool signed_zeros;
};
void compare_ulps(const std::string &what, const Values &got, const Values &want,
                  const Values &check, int bit, const UlpLimit &limit);

} // namespace golden

#endif
