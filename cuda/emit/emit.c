/* emit.c: prints every registered op's kernels as CUDA source, for nvcc to build ahead of time.
 *
 *   emit PART PARTS     part PART (from 0) of PARTS
 *
 * An elementwise op becomes y = op(a, ...) over arrays and the kernels of its adjoint, generated
 * from the same programs that the tape runs; a cooperative op becomes its lane function on a
 * block. Their adjoints are made of ops, each of which is here. */
#include <stdlib.h>
#include <string.h>

#include "core/builder.h"
#include "core/kernel.h"
#include "ops/all_ops.h"

static int part, parts, kernels, made;

/* Whether the kernel that comes next is of this part. */
static bool is_mine(void) {
    return kernels++ % parts == part;
}

static const char *c_type(tile_dtype dtype) {
    static const char *const names[] = {
#define ROW(id, name, T, A, kind, numpy) [id] = #T,
        TILE_DTYPE_LIST(ROW)
#undef ROW
    };
    return names[dtype];
}

static void fail(const char *what) {
    fprintf(stderr, "emit: %s: %s\n", what, tile_last_error());
    exit(1);
}

/* Prints one node of a pointwise program: every tile is the value at place i. */
static void print_node(const tile_program *p, const tile_node *n) {
    const tile_value *v = n->n_out ? tile_node_out(p, n, 0) : NULL;
    const char *array = n->op->access ? p->param[n->param].name : "";
    if (n->op->access == TILE_ACCESS_STORE) {
        printf("    %s[i] = v%d;\n", array, (int)tile_node_in(p, n, 0));
    } else if (n->op->access == TILE_ACCESS_LOAD) {
        printf("    const %s v%d = %s[i];\n", c_type(v->dtype), (int)n->out, array);
    } else if (n->op->kind == TILE_OP_ELEMENTWISE) {
        const tile_value *key = v;
        if (n->op->key != TILE_KEY_OUT0)
            key = &p->value[tile_node_in(p, n, n->op->key == TILE_KEY_IN1)];
        const bool cast = !strcmp(n->op->name, "cast");
        printf("    const %s v%d = %s_%s(", c_type(v->dtype), (int)n->out, n->op->name,
               tile_dtype_short(cast ? v->dtype : key->dtype));
        for (int k = 0; k < n->n_in; k++) printf(k ? ", v%d" : "v%d", (int)tile_node_in(p, n, k));
        printf(");\n");
    } else if (n->n_in) {
        printf("    const %s v%d = v%d;\n", c_type(v->dtype), (int)n->out,
               (int)tile_node_in(p, n, 0));
    } else if (tile_is_half(v->dtype)) {
        printf("    const %s v%d = %s_of_f64(%.17g);\n", c_type(v->dtype), (int)n->out,
               c_type(v->dtype), n->attrs.real);
    } else {
        printf("    const %s v%d = (%s)%.17g;\n", c_type(v->dtype), (int)n->out, c_type(v->dtype),
               tile_is_float(v->dtype) ? n->attrs.real : (double)n->attrs.n[0]);
    }
}

/* Offsets of windows and what they are made of are not needed: all windows are at place i. */
static bool is_shown(const tile_program *p, const tile_node *n) {
    if (n->op->kind == TILE_OP_STRUCTURE) return false;
    if (!n->n_out) return true;
    const tile_value *v = tile_node_out(p, n, 0);
    return v->dtype != TILE_I64 || v->shape.rank > 0;
}

static void print_kernel(const tile_program *p, const char *name) {
    printf("extern \"C\" __global__ void tile_%s(int64_t n", name);
    for (int k = 0; k < p->param_count; k++)
        printf(", %s *%s", c_type(p->param[k].dtype), p->param[k].name);
    printf(") {\n"
           "    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;\n"
           "    if (i >= n) return;\n");
    for (int k = 0; k < p->region[0].count; k++) {
        const tile_node *node = &p->node[p->region[0].node[k]];
        if (is_shown(p, node)) print_node(p, node);
    }
    printf("}\n\n");
}

/* y = op(a, b, c) on windows of arrays; NULL: the op does not take these types. */
static tile_kernel *pointwise_kernel(tile_context *ctx, const tile_op *op, const tile_dtype *in,
                                     tile_dtype out) {
    static const char *const names[] = {"a", "b", "c", "d"};
    const tile_shape shape = {1, {256}};
    tile_builder *b = tile_kernel_begin(ctx, op->name);
    const tile_offset at = {1, {tile_block_start(b, 0, 256)}, {0}};
    tile_emission e = {.op = op, .n_in = op->n_in, .has_dtype = true, .dtype = out};
    for (int k = 0; k < op->n_in; k++)
        e.in[k] = tile_load(tile_array_param(b, names[k], in[k], 1), shape, at);
    const tile y = tile_emit(b, &e);
    if (tile_is_good(y)) tile_store(tile_array_param(b, "y", tile_dtype_of(y), 1), y, at);
    tile_kernel *kernel;
    return tile_kernel_end(b, &kernel) ? NULL : kernel;
}

static void print_adjoint(tile_kernel *kernel, const char *name) {
    const tile_program *p = tile_executable_program(kernel->forward);
    const tile_adjoint_plan *plan;
    tile_adjoint_key key = {.apart = true};
    for (int k = 0; k < p->param_count; k++) {
        key.same[k] = (int8_t)k;
        if (!tile_is_float(p->param[k].dtype)) continue;
        if (kernel->writes >> k & 1u)
            key.upstream |= (uint32_t)1 << k;
        else
            key.active |= (uint32_t)1 << k;
    }
    if (!key.active || !key.upstream) return;
    if (tile_kernel_adjoint(kernel, &key, &plan)) fail(name);
    for (int k = 0; k < plan->count; k++) {
        char full[96];
        if (plan->step[k].kind != TILE_ADJOINT_GATHER) continue;
        snprintf(full, sizeof full, "%.80s_adjoint", name);
        print_kernel(tile_executable_program(plan->step[k].exe), full);
    }
}

static void print_elementwise(tile_context *ctx, const tile_op *op, const tile_dtype *in,
                              tile_dtype out) {
    char name[80];
    if (!op->strip(op, in, out)) return;
    tile_kernel *kernel = pointwise_kernel(ctx, op, in, out);
    if (!kernel) return;
    made++;
    if (!is_mine()) {
        tile_kernel_destroy(kernel);
        return;
    }
    snprintf(name, sizeof name, "%s_%s_%s", op->name, tile_dtype_short(in[op->key == TILE_KEY_IN1]),
             tile_dtype_short(out));
    print_kernel(tile_executable_program(kernel->forward), name);
    print_adjoint(kernel, name);
    tile_kernel_destroy(kernel);
}

/* Operand types: all T; or bool, T, T; or int64. Result: T, bool, or any. */
static void print_types(tile_context *ctx, const tile_op *op) {
    for (int t = 0; t < TILE_DTYPES; t++) {
        const tile_dtype type = (tile_dtype)t;
        const tile_dtype same[] = {type, type, type, type};
        const tile_dtype chosen[] = {TILE_BOOL, type, type, type};
        if (op->key == TILE_KEY_IN1) {
            print_elementwise(ctx, op, chosen, type);
            continue;
        }
        for (int u = 0; u < TILE_DTYPES; u++) print_elementwise(ctx, op, same, (tile_dtype)u);
    }
}

static void print_cooperative(const tile_op *op) {
    for (int t = 0; t < TILE_DTYPES; t++) {
        const char *type = tile_dtype_short((tile_dtype)t);
        if (!op->run[t]) continue;
        made++;
        if (!is_mine()) continue;
        printf(
            "extern \"C\" __global__ void tile_%s_%s(const tile_call c) {\n    %s_%s(&c);\n}\n\n",
            op->name, type, op->name, type);
    }
}

int main(int argc, char **argv) {
    tile_context *ctx;
    const tile_context_options one = {.threads = 1};
    part = argc == 3 ? atoi(argv[1]) : -1;
    parts = argc == 3 ? atoi(argv[2]) : 0;
    if (parts < 1 || part < 0 || part >= parts) {
        fprintf(stderr, "usage: emit PART PARTS\n");
        return 2;
    }
    if (tile_context_create(&one, &ctx)) fail("context");
    printf("/* Generated from the registry: part %d of %d. */\n", part, parts);
    printf("#include \"core/lane.h\"\n#include \"ops/all_lanes.inc\"\n\n");
    const tile_op *op;
    for (int i = 0; (op = tile_op_at(i)) != NULL; i++) {
        made = 0;
        if (op->kind == TILE_OP_ELEMENTWISE)
            print_types(ctx, op);
        else
            print_cooperative(op);
        if (!made) fail(op->name);
    }
    tile_context_destroy(ctx);
    return fflush(stdout) != 0;
}
