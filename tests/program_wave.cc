/* program_wave.cc: the acoustic wave equation, three buffers in turn, a source, a row of receivers.
 *
 *   next = 2 p - old + (c dt/h)^2 lap(p); next[source] += dt^2 w[t]; d[t, r] = next[receiver r]
 *   loss = 1/2 sum (d - d_obs)^2 */
#include "tests/golden_program.h"

namespace golden {

namespace {

enum { ROWS = 8, COLS = 16 };

void build_step(tile_builder *b) {
    const tile_param old_p = tile_array_param(b, "old", TILE_F64, 2);
    const tile_param p = tile_array_param(b, "p", TILE_F64, 2);
    const tile_param next = tile_array_param(b, "next", TILE_F64, 2);
    const tile_param velocity = tile_array_param(b, "c", TILE_F64, 2);
    const tile dt = tile_real_param(b, "dt", TILE_F64), h = tile_real_param(b, "h", TILE_F64);
    const tile_shape block = TILE_SHAPE(ROWS, COLS);
    const tile_offset at = TILE_AT(tile_block_start(b, 0, ROWS), tile_block_start(b, 1, COLS));
    const tile q = tile_load(p, block, at), old = tile_load(old_p, block, at);
    const tile n = tile_load(p, block, TILE_SHIFT(at, -1, 0));
    const tile s = tile_load(p, block, TILE_SHIFT(at, 1, 0));
    const tile w = tile_load(p, block, TILE_SHIFT(at, 0, -1));
    const tile e = tile_load(p, block, TILE_SHIFT(at, 0, 1));
    const tile c = tile_load(velocity, block, at);
    const tile lap = tile_expr("n + s + w + e - 4*q", n, s, w, e, q);
    const tile k = tile_expr("c * dt / h", c, dt, h);
    tile_store(next, tile_expr("2*q - old + k*k*lap", q, old, k, lap), at);
}

void build_inject(tile_builder *b) {
    const tile_param next = tile_array_param(b, "next", TILE_F64, 2);
    const tile_param wavelet = tile_array_param(b, "w", TILE_F64, 1);
    const tile z = tile_int_param(b, "z"), x = tile_int_param(b, "x"), t = tile_int_param(b, "t");
    const tile dt = tile_real_param(b, "dt", TILE_F64);
    const tile w = tile_load(wavelet, TILE_SCALAR, TILE_AT(t));
    tile_atomic_add(next, tile_expr("dt*dt*w", dt, w), TILE_AT(z, x));
}

tile_kernel *receive_kernel(Simulation *s, int64_t receivers) {
    return s->bench.kernel("receive", [=](tile_builder *b) {
        const tile_param next = tile_array_param(b, "next", TILE_F64, 2);
        const tile_param traces = tile_array_param(b, "d", TILE_F64, 2);
        const tile z = tile_int_param(b, "z"), x0 = tile_int_param(b, "x0");
        const tile dx = tile_int_param(b, "dx"), t = tile_int_param(b, "t");
        const tile r = tile_iota(b, TILE_I64, TILE_SHAPE(receivers), 0, tile_int(b, 0));
        const tile x = tile_expr("x0 + r*dx", x0, r, dx), zero = tile_int(b, 0);
        const tile row = tile_load_indexed(next, x, TILE_SHAPE(1, receivers), TILE_AT(z, zero), 1);
        tile_store(traces, row, TILE_AT(t, zero));
    });
}

void build_half(tile_builder *b) {
    const tile_param misfit = tile_array_param(b, "misfit", TILE_F64, 1);
    const tile_param loss = tile_array_param(b, "loss", TILE_F64, 1);
    const tile m = tile_load(misfit, TILE_SCALAR, TILE_AT_ZERO);
    tile_store(loss, tile_expr("m / 2", m), TILE_AT_ZERO);
}

} // namespace

void simulate_wave(Simulation *s) {
    const int64_t nz = s->extent("c", 0), nx = s->extent("c", 1);
    const int64_t steps = s->extent("d_obs", 0), receivers = s->extent("d_obs", 1);
    const double dt = s->c.real("dt"), h = s->c.real("h");
    tile_kernel *step = s->bench.kernel("step", build_step);
    tile_kernel *inject = s->bench.kernel("inject", build_inject);
    tile_kernel *receive = receive_kernel(s, receivers);
    tile_kernel *half = s->bench.kernel("half", build_half);
    tile_array *p[] = {s->zeros({nz, nx}), s->zeros({nz, nx}), s->zeros({nz, nx})};
    tile_array *misfit = s->zeros({1});
    s->out = s->zeros({steps, receivers});
    s->loss = s->zeros({1});
    const tile_grid grid = TILE_GRID(blocks(nz, ROWS), blocks(nx, COLS));
    for (int64_t t = 0; t < steps; t++) {
        tile_array *next = p[(t + 2) % 3];
        s->launch(step, grid, TILE_ARGS(p[t % 3], p[(t + 1) % 3], next, s->input("c"), dt, h));
        s->launch(inject, TILE_GRID(1),
                  TILE_ARGS(next, s->input("w"), s->c.integer("src_z"), s->c.integer("src_x"), t,
                            dt));
        s->launch(receive, TILE_GRID(1),
                  TILE_ARGS(next, s->out, s->c.integer("rec_z"), s->c.integer("rec_x0"),
                            s->c.integer("rec_dx"), t));
    }
    must(tape_misfit(s->bench.record, s->out, s->input("d_obs"), misfit));
    s->launch(half, TILE_GRID(1), TILE_ARGS(misfit, s->loss));
}

} // namespace golden
