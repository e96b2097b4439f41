/* program_nbody.cc: particles that attract each other; a block moves a few, and reads all of them.
 *
 *   a[i] = G sum_j m[j] (r[j] - r[i]) / (|r[j] - r[i]|^2 + eps^2)^(3/2)
 *   v <- v + dt a, then r <- r + dt v; loss = 1/2 sum (r - target)^2 */
#include "tests/golden_program.h"

namespace golden {

namespace {

enum { SIZE = 8 };

tile_kernel *step_kernel(Simulation *s, int64_t n) {
    return s->bench.kernel("step", [=](tile_builder *b) {
        const tile_param place = tile_array_param(b, "r", TILE_F64, 2);
        const tile_param next = tile_array_param(b, "next", TILE_F64, 2);
        const tile_param speed = tile_array_param(b, "v", TILE_F64, 2);
        const tile_param mass = tile_array_param(b, "m", TILE_F64, 1);
        const tile dt = tile_real_param(b, "dt", TILE_F64);
        const tile eps = tile_real_param(b, "eps", TILE_F64);
        const tile G = tile_real_param(b, "G", TILE_F64);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, SIZE), tile_int(b, 0));
        const tile mine = tile_load(place, TILE_SHAPE(SIZE, 3), at);
        const tile all = tile_load(place, TILE_SHAPE(n, 3), TILE_AT_ZERO);
        const tile m = tile_load(mass, TILE_SHAPE(n), TILE_AT_ZERO);

        const tile here = tile_reshape(mine, TILE_SHAPE(SIZE, 1, 3));
        const tile there = tile_reshape(all, TILE_SHAPE(1, n, 3));
        const tile d = tile_sub(there, here);
        const tile r2 = tile_sum(tile_mul(d, d), TILE_AXES(2));
        const tile soft = tile_expr("r2 + eps*eps", r2, eps);
        const tile pull = tile_expr("G * m / (soft * sqrt(soft))", G, m, soft);
        const tile a =
            tile_sum(tile_mul(tile_reshape(pull, TILE_SHAPE(SIZE, n, 1)), d), TILE_AXES(1));

        const tile old = tile_load(speed, TILE_SHAPE(SIZE, 3), at);
        const tile v = tile_expr("old + dt*a", old, dt, a);
        tile_store(speed, v, at);
        tile_store(next, tile_expr("mine + dt*v", mine, dt, v), at);
    });
}

void build_result(tile_builder *b) {
    const tile_param place = tile_array_param(b, "r", TILE_F64, 2);
    const tile_param speed = tile_array_param(b, "v", TILE_F64, 2);
    const tile_param target = tile_array_param(b, "target", TILE_F64, 2);
    const tile_param out = tile_array_param(b, "out", TILE_F64, 3);
    const tile_param loss = tile_array_param(b, "loss", TILE_F64, 1);
    const tile first = tile_block_start(b, 0, SIZE), zero = tile_int(b, 0), one = tile_int(b, 1);
    const tile_shape block = TILE_SHAPE(SIZE, 3), slab = TILE_SHAPE(1, SIZE, 3);
    const tile r = tile_load(place, block, TILE_AT(first, zero));
    const tile v = tile_load(speed, block, TILE_AT(first, zero));
    const tile want = tile_load(target, block, TILE_AT(first, zero));
    tile_store(out, tile_reshape(r, slab), TILE_AT(zero, first, zero));
    tile_store(out, tile_reshape(v, slab), TILE_AT(one, first, zero));
    const tile half = tile_expr("(r - want) * (r - want) / 2", r, want);
    tile_atomic_add(loss, tile_sum(half, TILE_ALL_AXES), TILE_AT_ZERO);
}

} // namespace

void simulate_nbody(Simulation *s) {
    const int64_t n = s->extent("r0", 0), steps = s->c.integer("steps");
    tile_kernel *step = step_kernel(s, n), *result = s->bench.kernel("result", build_result);
    tile_array *r[] = {s->copy("r0"), s->zeros({n, 3})}, *v = s->copy("v0");
    s->out = s->zeros({2, n, 3});
    s->loss = s->zeros({1});
    const tile_grid grid = TILE_GRID(blocks(n, SIZE));
    for (int64_t t = 0; t < steps; t++)
        s->launch(step, grid,
                  TILE_ARGS(r[t % 2], r[(t + 1) % 2], v, s->input("m"), s->c.real("dt"),
                            s->c.real("eps"), s->c.real("G")));
    s->launch(result, grid, TILE_ARGS(r[steps % 2], v, s->input("target"), s->out, s->loss));
}

} // namespace golden
