/* program_lbm.cc: lattice Boltzmann, D2Q9, BGK, periodic: collide into a second field, then stream.
 *
 *   rho = sum_q f, (ux, uy) = sum_q (cx, cy) f / rho
 *   feq = w rho (1 + 3 cu + 4.5 cu^2 - 1.5 (ux^2 + uy^2)), cu = cx ux + cy uy
 *   post = f - (f - feq)/tau; f[q, y+cy, x+cx] <- post[q, y, x]; loss = 1/2 sum (ux - target)^2 */
#include "tests/golden_program.h"

namespace golden {

namespace {

enum { SIZE = 8, DIRECTIONS = 9 };
const int cx[DIRECTIONS] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
const int cy[DIRECTIONS] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
const double weight[DIRECTIONS] = {4.0 / 9,  1.0 / 9,  1.0 / 9,  1.0 / 9, 1.0 / 9,
                                   1.0 / 36, 1.0 / 36, 1.0 / 36, 1.0 / 36};

/* The distributions of a block, density and velocity. */
struct Fluid {
    tile f[DIRECTIONS], rho, ux, uy;
};

/* What direction q at (y, x) needs: block axis 0 is y, axis 1 is x. */
tile_offset cell(tile_builder *b, int q) {
    return TILE_AT(tile_int(b, q), tile_block_start(b, 0, 1), tile_block_start(b, 1, SIZE));
}

/* Cells past the end have no density: they get one, so that nothing is divided by zero. */
Fluid load_fluid(tile_builder *b, tile_param field) {
    Fluid fluid;
    tile rho, mx = tile_real(b, TILE_F64, 0), my = mx;
    for (int q = 0; q < DIRECTIONS; q++) {
        const tile f = tile_load_padded(field, TILE_SHAPE(1, 1, SIZE), cell(b, q), 1);
        fluid.f[q] = f;
        rho = q ? tile_add(rho, f) : f;
        mx = cx[q] > 0 ? tile_add(mx, f) : cx[q] < 0 ? tile_sub(mx, f) : mx;
        my = cy[q] > 0 ? tile_add(my, f) : cy[q] < 0 ? tile_sub(my, f) : my;
    }
    fluid.rho = rho;
    fluid.ux = tile_expr("mx / rho", mx, rho);
    fluid.uy = tile_expr("my / rho", my, rho);
    return fluid;
}

void build_collide(tile_builder *b) {
    const tile_param field = tile_array_param(b, "f", TILE_F64, 3);
    const tile_param post = tile_array_param(b, "post", TILE_F64, 3);
    const tile_param time = tile_array_param(b, "tau", TILE_F64, 1);
    const tile tau = tile_load(time, TILE_SCALAR, TILE_AT_ZERO);
    const Fluid fluid = load_fluid(b, field);
    const tile rho = fluid.rho, ux = fluid.ux, uy = fluid.uy;
    const tile u2 = tile_expr("ux*ux + uy*uy", ux, uy);
    for (int q = 0; q < DIRECTIONS; q++) {
        const tile x = tile_real(b, TILE_F64, cx[q]), y = tile_real(b, TILE_F64, cy[q]);
        const tile w = tile_real(b, TILE_F64, weight[q]), f = fluid.f[q];
        const tile cu = tile_expr("x*ux + y*uy", x, ux, y, uy);
        const tile feq = tile_expr("w*rho * (1 + 3*cu + 4.5*cu*cu - 1.5*u2)", w, rho, cu, u2);
        tile_store(post, tile_expr("f - (f - feq) / tau", f, feq, tau), cell(b, q));
    }
}

void build_stream(tile_builder *b) {
    const tile_param post = tile_array_param(b, "post", TILE_F64, 3);
    const tile_param field = tile_array_param(b, "f", TILE_F64, 3);
    const tile nx = tile_int_param(b, "nx"), ny = tile_grid_size(b, 0), zero = tile_int(b, 0);
    const tile x = tile_iota(b, TILE_I64, TILE_SHAPE(SIZE), 0, tile_block_start(b, 1, SIZE));
    const tile y = tile_block_index(b, 0);
    for (int q = 0; q < DIRECTIONS; q++) {
        const tile dx = tile_int(b, cx[q]), dy = tile_int(b, cy[q]);
        const tile from_x = tile_expr("mod(x - dx, nx)", x, dx, nx);
        const tile from_y = tile_expr("mod(y - dy, ny)", y, dy, ny);
        const tile f = tile_load_indexed(post, from_x, TILE_SHAPE(1, 1, SIZE),
                                         TILE_AT(tile_int(b, q), from_y, zero), 2);
        tile_store(field, f, cell(b, q));
    }
}

void build_result(tile_builder *b) {
    const tile_param field = tile_array_param(b, "f", TILE_F64, 3);
    const tile_param target = tile_array_param(b, "target", TILE_F64, 2);
    const tile_param out = tile_array_param(b, "out", TILE_F64, 2);
    const tile_param loss = tile_array_param(b, "loss", TILE_F64, 1);
    const tile_offset at = TILE_AT(tile_block_start(b, 0, 1), tile_block_start(b, 1, SIZE));
    const tile ux = tile_reshape(load_fluid(b, field).ux, TILE_SHAPE(1, SIZE));
    const tile want = tile_load(target, TILE_SHAPE(1, SIZE), at);
    tile_store(out, ux, at);
    tile_atomic_add(loss,
                    tile_sum(tile_expr("(ux - want) * (ux - want) / 2", ux, want), TILE_ALL_AXES),
                    TILE_AT_ZERO);
}

} // namespace

void simulate_lbm(Simulation *s) {
    const int64_t ny = s->extent("f0", 1), nx = s->extent("f0", 2);
    tile_kernel *collide = s->bench.kernel("collide", build_collide);
    tile_kernel *stream = s->bench.kernel("stream", build_stream);
    tile_kernel *result = s->bench.kernel("result", build_result);
    tile_array *f = s->copy("f0"), *post = s->zeros({DIRECTIONS, ny, nx});
    s->out = s->zeros({ny, nx});
    s->loss = s->zeros({1});
    const tile_grid grid = TILE_GRID(ny, blocks(nx, SIZE));
    const int64_t steps = s->c.integer("steps");
    for (int64_t t = 0; t < steps; t++) {
        s->launch(collide, grid, TILE_ARGS(f, post, s->input("tau")));
        s->launch(stream, grid, TILE_ARGS(post, f, nx));
    }
    s->launch(result, grid, TILE_ARGS(f, s->input("target"), s->out, s->loss));
}

} // namespace golden
