/* sketch_scatter.c: a kernel, a tape, a gradient, as a user's C11 program has them. */
#include "tests/sketch_scatter.h"

#include "tape/tiletape.h"

/* y[i] += w[k] * x[k] for i = index[k]: a scatter, 256 elements a block. */
static tile_status build_scatter(tile_context *ctx, tile_kernel **kernel) {
    tile_builder *b = tile_kernel_begin(ctx, "scatter");
    tile_param x = tile_array_param(b, "x", TILE_F32, 1);
    tile_param w = tile_array_param(b, "w", TILE_F32, 1);
    tile_param index = tile_array_param(b, "index", TILE_I32, 1);
    tile_param y = tile_array_param(b, "y", TILE_F32, 1);

    tile first = tile_block_start(b, 0, 256);
    tile xs = tile_load(x, TILE_SHAPE(256), TILE_AT(first));
    tile ws = tile_load(w, TILE_SHAPE(256), TILE_AT(first));
    tile at = tile_load_padded(index, TILE_SHAPE(256), TILE_AT(first), -1);
    tile_atomic_add_indexed(y, at, tile_expr("ws * xs", ws, xs), TILE_AT_ZERO, 0);
    return tile_kernel_end(b, kernel);
}

/* loss = sum y^2, y of 8 elements. */
static tile_status build_loss(tile_context *ctx, tile_kernel **kernel) {
    tile_builder *b = tile_kernel_begin(ctx, "loss");
    tile_param y = tile_array_param(b, "y", TILE_F32, 1);
    tile_param loss = tile_array_param(b, "loss", TILE_F32, 1);
    tile ys = tile_load(y, TILE_SHAPE(8), TILE_AT_ZERO);
    tile_store(loss, tile_dot(ys, ys), TILE_AT_ZERO);
    return tile_kernel_end(b, kernel);
}

typedef struct program {
    tile_context *ctx;
    tile_kernel *scatter, *loss_kernel;
    tape *record;
    tile_array *x, *w, *index, *y, *loss;
} program;

#define TRY(call)                      \
    do {                               \
        const tile_status s_ = (call); \
        if (s_ != TILE_OK) return s_;  \
    } while (0)

static tile_status run(program *p, const sketch_scatter_data *d) {
    const size_t n = SKETCH_SCATTER_N;
    TRY(tile_context_create(NULL, &p->ctx));
    TRY(build_scatter(p->ctx, &p->scatter));
    TRY(build_loss(p->ctx, &p->loss_kernel));
    TRY(tape_create(p->ctx, NULL, &p->record));
    TRY(tile_array_create(p->ctx, TILE_F32, TILE_SHAPE(SKETCH_SCATTER_N), &p->x));
    TRY(tile_array_create(p->ctx, TILE_F32, TILE_SHAPE(SKETCH_SCATTER_N), &p->w));
    TRY(tile_array_create(p->ctx, TILE_I32, TILE_SHAPE(SKETCH_SCATTER_N), &p->index));
    TRY(tile_array_create(p->ctx, TILE_F32, TILE_SHAPE(8), &p->y));
    TRY(tile_array_create(p->ctx, TILE_F32, TILE_SHAPE(1), &p->loss));
    TRY(tile_array_request_grad(p->x));
    TRY(tile_array_write(p->x, d->x, n * sizeof(float)));
    TRY(tile_array_write(p->w, d->w, n * sizeof(float)));
    TRY(tile_array_write(p->index, d->index, n * sizeof(int32_t)));

    TRY(tile_launch(p->record, p->scatter, TILE_GRID(4), TILE_ARGS(p->x, p->w, p->index, p->y)));
    TRY(tile_launch(p->record, p->loss_kernel, TILE_GRID(1), TILE_ARGS(p->y, p->loss)));
    TRY(tape_backward(p->record, p->loss));
    TRY(tile_array_read(tile_array_grad(p->x), d->dx, n * sizeof(float)));
    return tile_array_save_npy(tile_array_grad(p->x), d->path);
}

tile_status sketch_scatter(const sketch_scatter_data *data) {
    program p = {0};
    const tile_status status = run(&p, data);
    tape_destroy(p.record);
    tile_array_destroy(p.x);
    tile_array_destroy(p.w);
    tile_array_destroy(p.index);
    tile_array_destroy(p.y);
    tile_array_destroy(p.loss);
    tile_kernel_destroy(p.scatter);
    tile_kernel_destroy(p.loss_kernel);
    tile_context_destroy(p.ctx);
    return status;
}
