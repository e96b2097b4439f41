/* program_burgers.cc: the viscous Burgers equation on a periodic line, two buffers in turn.
 *
 *   u[i] <- u[i] - dt/(2 dx) (u[i+1]^2/2 - u[i-1]^2/2) + nu dt/dx^2 (u[i+1] - 2 u[i] + u[i-1])
 *   loss = dx/2 sum (u - target)^2 */
#include "tests/golden_program.h"

namespace golden {

namespace {

enum { SIZE = 16 };

void build_step(tile_builder *b) {
    const tile_param u = tile_array_param(b, "u", TILE_F64, 1);
    const tile_param next = tile_array_param(b, "next", TILE_F64, 1);
    const tile_param viscosity = tile_array_param(b, "nu", TILE_F64, 1);
    const tile n = tile_int_param(b, "n");
    const tile dt = tile_real_param(b, "dt", TILE_F64), dx = tile_real_param(b, "dx", TILE_F64);
    const tile first = tile_block_start(b, 0, SIZE);
    const tile i = tile_iota(b, TILE_I64, TILE_SHAPE(SIZE), 0, first);
    const tile west_of = tile_expr("mod(i - 1, n)", i, n),
               east_of = tile_expr("mod(i + 1, n)", i, n);
    const tile c = tile_load(u, TILE_SHAPE(SIZE), TILE_AT(first));
    const tile w = tile_load_indexed(u, west_of, TILE_SHAPE(SIZE), TILE_AT_ZERO, 0);
    const tile e = tile_load_indexed(u, east_of, TILE_SHAPE(SIZE), TILE_AT_ZERO, 0);
    const tile nu = tile_load(viscosity, TILE_SCALAR, TILE_AT_ZERO);
    const tile flux = tile_expr("dt / (2*dx) * (e*e/2 - w*w/2)", dt, dx, e, w);
    const tile spread = tile_expr("nu * dt / (dx*dx) * (e - 2*c + w)", nu, dt, dx, e, c, w);
    tile_store(next, tile_expr("c - flux + spread", c, flux, spread), TILE_AT(first));
}

void build_loss(tile_builder *b) {
    const tile_param u = tile_array_param(b, "u", TILE_F64, 1);
    const tile_param target = tile_array_param(b, "target", TILE_F64, 1);
    const tile_param loss = tile_array_param(b, "loss", TILE_F64, 1);
    const tile dx = tile_real_param(b, "dx", TILE_F64);
    const tile_offset at = TILE_AT(tile_block_start(b, 0, SIZE));
    const tile got = tile_load(u, TILE_SHAPE(SIZE), at);
    const tile wanted = tile_load(target, TILE_SHAPE(SIZE), at);
    const tile square =
        tile_sum(tile_expr("(got - wanted) * (got - wanted)", got, wanted), TILE_ALL_AXES);
    tile_atomic_add(loss, tile_expr("dx/2 * square", dx, square), TILE_AT_ZERO);
}

} // namespace

void simulate_burgers(Simulation *s) {
    const int64_t n = s->count("u0"), steps = s->c.integer("steps");
    const double dt = s->c.real("dt"), dx = s->c.real("dx");
    tile_kernel *step = s->bench.kernel("step", build_step);
    tile_kernel *misfit = s->bench.kernel("misfit", build_loss);
    tile_array *u[] = {s->copy("u0"), s->zeros({n})};
    s->loss = s->zeros({1});
    const tile_grid grid = TILE_GRID(blocks(n, SIZE));
    for (int64_t t = 0; t < steps; t++)
        s->launch(step, grid, TILE_ARGS(u[t % 2], u[(t + 1) % 2], s->input("nu"), n, dt, dx));
    s->out = u[steps % 2];
    s->launch(misfit, grid, TILE_ARGS(s->out, s->input("target"), s->loss, dx));
}

} // namespace golden
