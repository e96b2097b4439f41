/* nbody_kernel.c: the energy of particles as a tile kernel. */
#include "benchmarks/nbody_kernel.h"

/* Squares of distances along one axis, [NBODY_ROWS, NBODY_COLUMNS]. */
static tile square(tile_param r, tile_offset rows, tile_offset columns) {
    const tile here =
        tile_reshape(tile_load(r, TILE_SHAPE(NBODY_ROWS), rows), TILE_SHAPE(NBODY_ROWS, 1));
    const tile there = tile_reshape(tile_load(r, TILE_SHAPE(NBODY_COLUMNS), columns),
                                    TILE_SHAPE(1, NBODY_COLUMNS));
    const tile d = tile_sub(there, here);
    return tile_mul(d, d);
}

tile_status nbody_kernel_build(tile_context *ctx, int64_t n, tile_kernel **kernel) {
    static const char *const names[NBODY_AXES] = {"x", "y", "z"};
    tile_builder *b = tile_kernel_begin(ctx, "energy");
    tile_param r[NBODY_AXES];
    for (int k = 0; k < NBODY_AXES; k++) r[k] = tile_array_param(b, names[k], TILE_F32, 1);
    const tile_param mass = tile_array_param(b, "m", TILE_F32, 1);
    const tile_param energy = tile_array_param(b, "energy", TILE_F32, 1);
    const tile_offset rows = TILE_AT(tile_block_start(b, 0, NBODY_ROWS));
    const tile none = tile_zeros(b, TILE_F32, TILE_SHAPE(NBODY_ROWS));
    tile_loop loop = tile_loop_begin(b, tile_int(b, n / NBODY_COLUMNS), TILE_LIST(none));
    const tile_offset columns = TILE_AT(tile_mul(loop.index, tile_int(b, NBODY_COLUMNS)));
    const tile dx = square(r[0], rows, columns), dy = square(r[1], rows, columns),
               dz = square(r[2], rows, columns), eps2 = tile_real(b, TILE_F32, (double)NBODY_EPS2);
    const tile m = tile_load(mass, TILE_SHAPE(NBODY_COLUMNS), columns);
    const tile pull = tile_expr("m / sqrt(dx + dy + dz + eps2)", m, dx, dy, dz, eps2);
    tile_loop_end(&loop, TILE_LIST(tile_add(loop.carried[0], tile_sum(pull, TILE_AXES(1)))));
    const tile mine = tile_load(mass, TILE_SHAPE(NBODY_ROWS), rows), sum = loop.carried[0];
    const tile part = tile_sum(tile_expr("-0.5 * mine * sum", mine, sum), TILE_ALL_AXES);
    tile_atomic_add(energy, part, TILE_AT_ZERO);
    return tile_kernel_end(b, kernel);
}
