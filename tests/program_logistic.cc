/* program_logistic.cc: one number overwritten step by step, x <- r x (1 - x). */
#include "tests/golden_program.h"

namespace golden {

void simulate_logistic(Simulation *s) {
    tile_kernel *step = s->bench.kernel("step", [](tile_builder *b) {
        const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param rate = tile_array_param(b, "r", TILE_F64, 1);
        const tile old = tile_load(x, TILE_SCALAR, TILE_AT_ZERO);
        const tile r = tile_load(rate, TILE_SCALAR, TILE_AT_ZERO);
        tile_store(x, tile_expr("r * old * (1 - old)", r, old), TILE_AT_ZERO);
    });
    tile_array *x = s->copy("x0");
    const int64_t steps = s->c.integer("steps");
    for (int64_t t = 0; t < steps; t++) s->launch(step, TILE_GRID(1), TILE_ARGS(x, s->input("r")));
    s->out = s->loss = x;
}

} // namespace golden
