/* golden_program.h: what a simulation of the format `programs` is given and what it gives back. */
#ifndef TILE_TESTS_GOLDEN_PROGRAM_H
#define TILE_TESTS_GOLDEN_PROGRAM_H

#include "tests/golden_runner.h"

namespace golden {

struct Simulation {
    explicit Simulation(const Case &line) : c(line) {}

    const Case &c;
    Bench bench;
    std::map<std::string, tile_array *> array;  /* the inputs; those in gradients have a gradient */
    tile_array *loss = nullptr, *out = nullptr; /* to make, on the tape */

    tile_array *input(const std::string &name) {
        return array.at(name);
    }
    int64_t extent(const std::string &name, int d) {
        return tile_array_shape(input(name)).extent[d];
    }
    int64_t count(const std::string &name) {
        return tile_array_count(input(name));
    }
    tile_array *zeros(const Ints &shape) {
        return bench.zeros(TILE_F64, shape);
    }
    /* An array that starts as a copy of an input; the copy is on the tape. */
    tile_array *copy(const std::string &name) {
        tile_array *x = input(name);
        const tile_shape shape = tile_array_shape(x);
        tile_array *y = zeros(Ints(shape.extent, shape.extent + shape.rank));
        must(tape_copy(bench.record, x, y));
        return y;
    }
    void launch(tile_kernel *kernel, tile_grid grid, const tile_args &args) {
        must(tile_launch(bench.record, kernel, grid, args));
    }
};

/* Blocks of size tile that cover n. */
inline int64_t blocks(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

void simulate_rosenbrock(Simulation *s);
void simulate_burgers(Simulation *s);
void simulate_wave(Simulation *s);
void simulate_nbody(Simulation *s);
void simulate_gmm(Simulation *s);
void simulate_logistic(Simulation *s);
void simulate_mass_spring(Simulation *s);
void simulate_lbm(Simulation *s);

} // namespace golden

#endif
