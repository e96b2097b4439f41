/* op_check.h: the generated tests of one op. Each returns "" or what is wrong in one line. */
#ifndef TILE_TESTS_OP_CHECK_H
#define TILE_TESTS_OP_CHECK_H

#include "tests/op_run.h"

namespace op_test {

/* A gradient in float64, and what differences say of it. */
struct Measured {
    const Problem *problem = nullptr;
    Upstream up;
    Outcome run;
    struct Entry {
        size_t field, i;
        double slope, error; /* by differences, and how far off that can be */
    };
    std::vector<Entry> entry;
    struct Direction {
        std::vector<Reals> v;
        double slope, error;
    };
    std::vector<Direction> direction;
    std::vector<double> largest; /* per field: the largest slope */
    std::string error;
};
Measured measure(const Problem &p);

/* Whether the gradient agrees: element by element, along random directions, what was there before
 * plus exactly the gradient; nothing for what was overwritten, exactly nothing where declared
 * ZERO. */
std::string judge(const Measured &m);

/* Each input declared FULL has a gradient that is seen in some of the problems. */
std::string judge_not_vacuous(const tile_op *op, const std::vector<Measured> &all);

/* A fault in a right adjoint. Changes the gradients of a run, as if the adjoint had the fault. */
struct Fault {
    const char *name;
    void (*plant)(const Field &f, const Reals &start, const Reals &seed, Reals *grad);
};
const std::vector<Fault> &faults();

/* Plants each fault wherever it changes something: judge must find it every time; and somewhere it
 * must change something, unless the op has no gradient at all. */
std::string check_faults(const tile_op *op, const std::vector<Measured> &all);

/* At ties and on kinks: each entry lies between the slopes of either side; together, where operands
 * move as one and differences of both sides agree, they are the slope. */
std::string check_ties(const Problem &p);

/* float32 against float64 on the same inputs, values and gradients. */
std::string check_float32(const Problem &p);

/* 16-bit floats against float32 on the same inputs, rounded once. */
std::string check_halves(const Problem &p);

/* Integer dtypes against float64 where that is exact. */
std::string check_integers(const Problem &p);

/* The same bits in other memory, a second time, and without a tape. */
std::string check_places(const Problem &p);

/* The same bits for 1, 2, 3 and 8 threads. */
std::string check_threads(const Problem &p);

/* The same bits by the interpreter and by native code, in the library's memory and with gaps. */
std::string check_native(const Problem &p, tile_dtype real);

/* Where the upstream gradient is exactly 0 the gradient is exactly 0, whatever the operands are. */
std::string check_zero_upstream(const Problem &p);

/* Arrays and grids without elements: no error, nothing happens. */
std::string check_empty(const Problem &p);

/* Each allocation of a launch and a sweep in turn fails: the right status, nothing changed. */
std::string check_memory(const Problem &p);

/* A gradient asked through an input declared ABSENT is an error that names the op. */
std::string check_absent(const Problem &p);

/* Each dtype works or is refused with TILE_E_DTYPE, as the registration says; mixed ones are
 * refused. */
std::string check_dtypes(const tile_op *op);

} // namespace op_test

#endif
