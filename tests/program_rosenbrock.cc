/* program_rosenbrock.cc: residuals of the Rosenbrock chain and their sum of squares.
 *
 *   r[2i] = 10 (x[i+1] - x[i]^2), r[2i+1] = 1 - x[i]; loss = sum r^2 */
#include "tests/golden_program.h"

namespace golden {

void simulate_rosenbrock(Simulation *s) {
    enum { SIZE = 4 };
    const int64_t n = s->count("x");
    tile_kernel *residual = s->bench.kernel("residual", [](tile_builder *b) {
        const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param out = tile_array_param(b, "out", TILE_F64, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, SIZE));
        const tile here = tile_load(x, TILE_SHAPE(SIZE), at);
        const tile next = tile_load(x, TILE_SHAPE(SIZE), TILE_SHIFT(at, 1));
        const tile slope = tile_expr("10 * (next - here*here)", next, here);
        const tile rest = tile_expr("1 - here", here);
        const tile pairs = tile_concat(TILE_LIST(tile_reshape(slope, TILE_SHAPE(SIZE, 1)),
                                                 tile_reshape(rest, TILE_SHAPE(SIZE, 1))),
                                       1);
        tile_store(out, tile_reshape(pairs, TILE_SHAPE(2 * SIZE)),
                   TILE_AT(tile_block_start(b, 0, 2 * SIZE)));
    });
    s->out = s->zeros({2 * (n - 1)});
    s->loss = s->zeros({1});
    s->launch(residual, TILE_GRID(blocks(n - 1, SIZE)), TILE_ARGS(s->input("x"), s->out));
    must(tape_dot(s->bench.record, s->out, s->out, s->loss));
}

} // namespace golden
