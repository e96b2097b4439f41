/* cuda_table_main.cc: compiles kernels of simulations and their adjoints to cubins in a folder, for
 * cuda_table.sh.
 *
 *   cuda_table FOLDER ARCH      also writes the sources there
 */
#include <cstdio>
#include <fstream>
#include <functional>
#include <vector>

#include "benchmarks/burgers_kernel.h"
#include "benchmarks/wave_kernel.h"
#include "cuda/nvrtc.h"
#include "tape/tiletape.h"
#include "tests/collect_device.h"

namespace {

CollectDevice device;
std::string folder, arch;

void fail(const char *what) {
    std::fprintf(stderr, "%s: %s\n", what, tile_last_error());
    std::exit(1);
}
void must(tile_status status, const char *what) {
    if (status) fail(what);
}

/* What a case made: NAME_0 is the launch, the others its adjoint. */
void write_kernels(const std::string &name) {
    for (size_t k = 0; k < device.text.size(); k++) {
        const std::string path = folder + "/" + name + "_" + std::to_string(k);
        const std::string source = device.source(k, 1);
        tile_cubin cubin;
        std::ofstream(path + ".cu") << source;
        must(tile_nvrtc_compile(source.c_str(), path.c_str(), arch.c_str(), &cubin), path.c_str());
        std::ofstream(path + ".cubin", std::ios::binary)
            .write(static_cast<const char *>(cubin.data),
                   static_cast<std::streamsize>(cubin.bytes));
        tile_cubin_clear(&cubin);
    }
}

struct Case {
    std::string name;
    std::vector<tile_dtype> dtype; /* of arrays of 4096 x 4096, or 2^24 */
    int rank;
    std::vector<tile_arg> scalars;
    std::function<tile_status(tile_context *, tile_kernel **)> build;
    tile_grid grid;
};

void run(tile_context *ctx, const Case &c) {
    tile_kernel *kernel;
    std::vector<tile_array *> array;
    std::vector<tile_arg> args;
    device.text.clear();
    must(c.build(ctx, &kernel), c.name.c_str());
    for (tile_dtype dtype : c.dtype) {
        const tile_shape shape = c.rank == 2 ? TILE_SHAPE(256, 256) : TILE_SHAPE(65536);
        array.push_back(nullptr);
        must(tile_array_create(ctx, dtype, shape, &array.back()), "array");
        if (dtype != TILE_I32) must(tile_array_request_grad(array.back()), "grad");
        args.push_back(tile_arg_array(array.back()));
    }
    args.insert(args.end(), c.scalars.begin(), c.scalars.end());
    tape *record;
    must(tape_create(ctx, nullptr, &record), "tape");
    must(tile_launch(record, kernel, c.grid, {static_cast<int>(args.size()), args.data()}),
         c.name.c_str());
    write_kernels(c.name);
    device.text.clear();
    must(tape_backward_seeds(record, 1, &array.back(), &array.back()), "backward");
    write_kernels(c.name + "_adjoint");
    tape_destroy(record);
    tile_kernel_destroy(kernel);
    for (tile_array *a : array) tile_array_destroy(a);
}

tile_status build_scatter(tile_context *ctx, tile_kernel **kernel) {
    tile_builder *b = tile_kernel_begin(ctx, "scatter");
    tile_param index = tile_array_param(b, "index", TILE_I32, 1);
    tile_param x = tile_array_param(b, "x", TILE_F32, 1), y = tile_array_param(b, "y", TILE_F32, 1);
    tile at = tile_block_start(b, 0, 1024);
    tile places = tile_load_padded(index, TILE_SHAPE(1024), TILE_AT(at), -1);
    tile xs = tile_load(x, TILE_SHAPE(1024), TILE_AT(at));
    tile_atomic_add_indexed(y, places, tile_mul(xs, xs), TILE_AT_ZERO, 0);
    return tile_kernel_end(b, kernel);
}

tile_status build_reduce(tile_context *ctx, tile_kernel **kernel) {
    tile_builder *b = tile_kernel_begin(ctx, "reduce");
    tile_param x = tile_array_param(b, "x", TILE_F32, 1), y = tile_array_param(b, "y", TILE_F32, 1);
    tile xs = tile_load(x, TILE_SHAPE(4096), TILE_AT(tile_block_start(b, 0, 4096)));
    tile_atomic_add(y, tile_sum(tile_mul(xs, xs), TILE_ALL_AXES), TILE_AT_ZERO);
    return tile_kernel_end(b, kernel);
}

tile_status build_nbody(tile_context *ctx, tile_kernel **kernel) {
    tile_builder *b = tile_kernel_begin(ctx, "nbody");
    tile_param x = tile_array_param(b, "x", TILE_F32, 1), m = tile_array_param(b, "m", TILE_F32, 1);
    tile_param e = tile_array_param(b, "e", TILE_F32, 1);
    tile mine = tile_load(x, TILE_SHAPE(16), TILE_AT(tile_block_start(b, 0, 16)));
    tile first = tile_block_start(b, 1, 256);
    tile all = tile_load(x, TILE_SHAPE(256), TILE_AT(first));
    tile mass = tile_load(m, TILE_SHAPE(256), TILE_AT(first));
    tile d = tile_sub(tile_reshape(all, TILE_SHAPE(1, 256)), tile_reshape(mine, TILE_SHAPE(16, 1)));
    tile masses = tile_reshape(mass, TILE_SHAPE(1, 256));
    tile pull = tile_expr("masses / sqrt(d * d + 0.001)", masses, d);
    tile_atomic_add(e, tile_sum(pull, TILE_AXES(1)), TILE_AT(tile_block_start(b, 0, 16)));
    return tile_kernel_end(b, kernel);
}

template <tile_dtype D> tile_status build_matmul(tile_context *ctx, tile_kernel **kernel) {
    tile_builder *b = tile_kernel_begin(ctx, "matmul");
    tile_param x = tile_array_param(b, "x", D, 2), y = tile_array_param(b, "y", D, 2);
    tile_param z = tile_array_param(b, "z", D, 2);
    tile row = tile_block_start(b, 0, 64), column = tile_block_start(b, 1, 64);
    tile xs = tile_load(x, TILE_SHAPE(64, 32), TILE_AT(row, tile_int(b, 0)));
    tile ys = tile_load(y, TILE_SHAPE(32, 64), TILE_AT(tile_int(b, 0), column));
    tile_store(z, tile_matmul(xs, ys), TILE_AT(row, column));
    return tile_kernel_end(b, kernel);
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: cuda_table FOLDER ARCH\n");
        return 2;
    }
    folder = argv[1];
    arch = argv[2];
    tile_context *ctx;
    tile_device_use(&device.device);
    must(tile_context_create(nullptr, &ctx), "context");
    const tile_dtype f32 = TILE_F32, f16 = TILE_F16;
    const std::vector<Case> cases = {
        {"wave",
         {f32, f32, f32, f32, f32},
         2,
         {tile_arg_real(0.5)},
         [](tile_context *c, tile_kernel **k) { return wave_kernel_build(c, TILE_F32, 32, 64, k); },
         TILE_GRID(8, 4)},
        {"burgers",
         {f32, f32, f32, f32},
         2,
         {tile_arg_real(0.1), tile_arg_real(0.2)},
         [](tile_context *c, tile_kernel **k) {
             return burgers_kernel_build(c, TILE_F32, 32, 64, k);
         },
         TILE_GRID(8, 4)},
        {"scatter", {TILE_I32, f32, f32}, 1, {}, build_scatter, TILE_GRID(64)},
        {"reduce", {f32, f32}, 1, {}, build_reduce, TILE_GRID(16)},
        {"nbody", {f32, f32, f32}, 1, {}, build_nbody, TILE_GRID(16, 4)},
        {"matmul", {f32, f32, f32}, 2, {}, build_matmul<TILE_F32>, TILE_GRID(4, 4)},
        {"matmul_f16", {f16, f16, f16}, 2, {}, build_matmul<TILE_F16>, TILE_GRID(4, 4)}};
    for (const Case &c : cases) run(ctx, c);
    tile_context_destroy(ctx);
    return 0;
}
