/* program_mass_spring.cc: a chain of masses and springs, the first mass held.
 *
 *   d = x[i+1] - x[i], f = k[i] (|d| - length[i]) d/|d|; mass i gets +f, mass i+1 gets -f
 *   v <- v + dt F/mass, v[0] = 0, then x <- x + dt v
 *   loss = 1/2 |x[n-1] - target|^2 + weight/2 sum v^2 */
#include "tests/golden_program.h"

namespace golden {

namespace {

enum { SIZE = 4 };

/* Force of the springs that begin at the masses from first on; there is one for 0 <= i < n - 1. */
tile spring_force(tile_builder *b, tile first, tile_param x, tile_param stiffness,
                  tile_param length, tile n) {
    const tile_shape block = TILE_SHAPE(SIZE, 2);
    const tile_offset along = TILE_AT(first), at = TILE_AT(first, tile_int(b, 0));
    const tile i = tile_iota(b, TILE_I64, TILE_SHAPE(SIZE), 0, first);
    const tile k = tile_load(stiffness, TILE_SHAPE(SIZE), along);
    const tile rest = tile_load(length, TILE_SHAPE(SIZE), along);
    const tile d = tile_sub(tile_load(x, block, TILE_SHIFT(at, 1, 0)), tile_load(x, block, at));
    const tile l = tile_sqrt(tile_sum(tile_mul(d, d), TILE_AXES(1)));
    const tile pull = tile_expr("i >= 0 && i < n - 1 ? k * (l - rest) / l : 0", i, n, k, l, rest);
    return tile_mul(tile_reshape(pull, TILE_SHAPE(SIZE, 1)), d);
}

void build_step(tile_builder *b) {
    const tile_param x = tile_array_param(b, "x", TILE_F64, 2);
    const tile_param next = tile_array_param(b, "next", TILE_F64, 2);
    const tile_param speed = tile_array_param(b, "v", TILE_F64, 2);
    const tile_param stiffness = tile_array_param(b, "k", TILE_F64, 1);
    const tile_param length = tile_array_param(b, "length", TILE_F64, 1);
    const tile n = tile_int_param(b, "n"), dt = tile_real_param(b, "dt", TILE_F64);
    const tile mass = tile_real_param(b, "mass", TILE_F64);
    const tile drag = tile_real_param(b, "drag", TILE_F64);
    const tile gravity = tile_real_param(b, "gravity", TILE_F64);
    const tile first = tile_block_start(b, 0, SIZE), zero = tile_int(b, 0);
    const tile_offset at = TILE_AT(first, zero);
    const tile before = tile_expr("first - 1", first);
    const tile right = spring_force(b, first, x, stiffness, length, n);
    const tile left = spring_force(b, before, x, stiffness, length, n);
    const tile old = tile_load(speed, TILE_SHAPE(SIZE, 2), at);
    const tile row = tile_iota(b, TILE_I64, TILE_SHAPE(SIZE, 1), 0, first);
    const tile column = tile_iota(b, TILE_I64, TILE_SHAPE(1, 2), 1, zero);
    const tile weight = tile_expr("column == 1 ? -mass * gravity : 0", column, mass, gravity);
    const tile force =
        tile_expr("right - left + weight - drag*old", right, left, weight, drag, old);
    const tile v = tile_expr("row == 0 ? 0 : old + dt*force/mass", row, old, dt, force, mass);
    const tile place = tile_load(x, TILE_SHAPE(SIZE, 2), at);
    tile_store(speed, v, at);
    tile_store(next, tile_expr("place + dt*v", place, dt, v), at);
}

void build_result(tile_builder *b) {
    const tile_param x = tile_array_param(b, "x", TILE_F64, 2);
    const tile_param speed = tile_array_param(b, "v", TILE_F64, 2);
    const tile_param target = tile_array_param(b, "target", TILE_F64, 1);
    const tile_param out = tile_array_param(b, "out", TILE_F64, 3);
    const tile_param loss = tile_array_param(b, "loss", TILE_F64, 1);
    const tile n = tile_int_param(b, "n"), weight = tile_real_param(b, "weight", TILE_F64);
    const tile first = tile_block_start(b, 0, SIZE), zero = tile_int(b, 0), one = tile_int(b, 1);
    const tile_shape block = TILE_SHAPE(SIZE, 2), slab = TILE_SHAPE(1, SIZE, 2);
    const tile place = tile_load(x, block, TILE_AT(first, zero));
    const tile v = tile_load(speed, block, TILE_AT(first, zero));
    const tile want = tile_load(target, TILE_SHAPE(2), TILE_AT_ZERO);
    tile_store(out, tile_reshape(place, slab), TILE_AT(zero, first, zero));
    tile_store(out, tile_reshape(v, slab), TILE_AT(one, first, zero));
    const tile row = tile_iota(b, TILE_I64, TILE_SHAPE(SIZE, 1), 0, first);
    const tile miss = tile_expr("row == n - 1 ? place - want : 0", row, n, place, want);
    const tile part = tile_expr("miss*miss/2 + weight/2 * v*v", miss, weight, v);
    tile_atomic_add(loss, tile_sum(part, TILE_ALL_AXES), TILE_AT_ZERO);
}

} // namespace

void simulate_mass_spring(Simulation *s) {
    const int64_t n = s->extent("x0", 0), steps = s->c.integer("steps");
    tile_kernel *step = s->bench.kernel("step", build_step);
    tile_kernel *result = s->bench.kernel("result", build_result);
    tile_array *x[] = {s->copy("x0"), s->zeros({n, 2})}, *v = s->copy("v0");
    s->out = s->zeros({2, n, 2});
    s->loss = s->zeros({1});
    const tile_grid grid = TILE_GRID(blocks(n, SIZE));
    for (int64_t t = 0; t < steps; t++)
        s->launch(step, grid,
                  TILE_ARGS(x[t % 2], x[(t + 1) % 2], v, s->input("k"), s->input("length"), n,
                            s->c.real("dt"), s->c.real("mass"), s->c.real("drag"),
                            s->c.real("gravity")));
    s->launch(result, grid,
              TILE_ARGS(x[steps % 2], v, s->input("target"), s->out, s->loss, n,
                        s->c.real("weight")));
}

} // namespace golden
