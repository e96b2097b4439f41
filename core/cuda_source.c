/* cuda_source.c: the CUDA C text of a program: its block plan, step by step. */
#include "core/cuda_source.h"

#include <string.h>

#include "core/cuda_writer.h"
#include "core/exec_rows.h"
#include "core/memory.h"
#include "core/status.h"

const char *tile_cuda_type(tile_dtype dtype) {
    static const char *const names[] = {
#define ROW(id, name, T, A, kind, numpy) [id] = #T,
        TILE_DTYPE_LIST(ROW)
#undef ROW
    };
    return names[dtype];
}

enum { WORK_MOST = TILE_CUDA_THREADS_MAX };

static const tile_value *value_of(const tile_cuda_writer *w, int32_t value) {
    return &w->p->value[value];
}

/* Text */

void tile_cuda_margin(const tile_cuda_writer *w) {
    tile_text_add(w->out, "%*s", 4 * w->depth, "");
}

void tile_cuda_integer(int64_t x, char to[TILE_CUDA_OPERAND]) {
    if (x == INT64_MIN)
        (void)snprintf(to, TILE_CUDA_OPERAND, "(-9223372036854775807LL - 1)");
    else
        (void)snprintf(to, TILE_CUDA_OPERAND, "%lldLL", (long long)x);
}

void tile_cuda_arena_at(const tile_cuda_writer *w, int32_t value, const char *index,
                        char to[TILE_CUDA_OPERAND]) {
    const int32_t base = tile_cuda_base(w, value);
    (void)snprintf(to, TILE_CUDA_OPERAND, "((%s *)(arena + %zu))[%s]",
                   tile_cuda_type(value_of(w, base)->dtype), w->plan->place[base], index);
}

void tile_cuda_single(const tile_cuda_writer *w, int32_t value, char to[TILE_CUDA_OPERAND]) {
    const int32_t base = tile_cuda_base(w, value);
    char index[32];
    (void)snprintf(index, sizeof index, "%lld", (long long)w->order->view[value].first);
    if (w->order->lone[base])
        (void)snprintf(to, TILE_CUDA_OPERAND, "v%d", (int)base);
    else
        tile_cuda_arena_at(w, value, index, to);
}

void tile_cuda_needs(tile_cuda_writer *w, int32_t value) {
    if (!w->order->lone[tile_cuda_base(w, value)]) tile_cuda_reads(w, value);
}

void tile_cuda_will_place(tile_cuda_writer *w, int32_t value) {
    if (w->order->placed[value]) tile_cuda_writes(w, value);
}

void tile_cuda_place_lone(tile_cuda_writer *w, int32_t value) {
    char to[TILE_CUDA_OPERAND];
    if (!w->order->placed[value]) return;
    tile_cuda_arena_at(w, value, "0", to);
    TILE_CUDA_LINE(w, "if (TILE_LANE_NUMBER == 0) %s = v%d;\n", to, (int)value);
}

/* Cooperative */

static void write_dims(const tile_cuda_writer *w, const char *which, int k, const tile_dims *dims) {
    tile_cuda_margin(w);
    tile_text_add(w->out, "c.%s[%d].rank = %d;", which, k, (int)dims->rank);
    for (int d = 0; d < dims->rank; d++)
        tile_text_add(w->out, " c.%s[%d].extent[%d] = %d;", which, k, d, (int)dims->extent[d]);
    tile_text_add(w->out, "\n");
}

static void write_attr_fields(const tile_cuda_writer *w, const char *name,
                              const tile_attrs *attrs) {
    uint64_t bits;
    char number[TILE_CUDA_OPERAND];
    memcpy(&bits, &attrs->real, sizeof bits);
    for (int d = 0; d < TILE_DIMS; d++) {
        if (!attrs->n[d]) continue;
        tile_cuda_integer(attrs->n[d], number);
        TILE_CUDA_LINE(w, "%s.n[%d] = %s;\n", name, d, number);
    }
    if (!bits) return;
    TILE_CUDA_LINE(w, "%s.real = tile_f64_of_bits(0x%llxULL); /* %.17g */\n", name,
                   (unsigned long long)bits, attrs->real);
}

void tile_cuda_write_attrs(const tile_cuda_writer *w, const tile_node *n) {
    char name[TILE_CUDA_OPERAND];
    (void)snprintf(name, sizeof name, "q%d", (int)(n - w->p->node));
    TILE_CUDA_LINE(w, "tile_attrs %s = {};\n", name);
    write_attr_fields(w, name, &n->attrs);
}

static void write_place(const tile_cuda_writer *w, const tile_call_step *c) {
    const tile_node *n = c->node;
    char at[TILE_CUDA_OPERAND], low[TILE_CUDA_OPERAND], high[TILE_CUDA_OPERAND];
    for (int d = 0; d < TILE_DIMS; d++) {
        const int64_t shift = c->call.attrs.shift[d];
        char by[TILE_CUDA_OPERAND], to[TILE_CUDA_OPERAND] = "0";
        if (d >= c->offsets && !shift) continue;
        if (d < c->offsets) tile_cuda_single(w, tile_node_in(w->p, n, c->n_in + d), to);
        tile_cuda_integer(shift, by);
        tile_cuda_margin(w);
        tile_text_add(w->out, "c.offset[%d] = tile_cuda_held(%s, %s);\n", d, to, by);
    }
    if (!n->op->access) return;
    tile_cuda_margin(w);
    tile_text_add(w->out, "tile_cuda_window(&c, &l.array[%d]);\n", (int)n->param);
    for (int d = 0; 2 * d < c->bounds; d++) {
        const int first = c->n_in + c->offsets + 2 * d;
        tile_cuda_single(w, tile_node_in(w->p, n, first), low);
        tile_cuda_single(w, tile_node_in(w->p, n, first + 1), high);
        (void)snprintf(at, sizeof at, "%d", d);
        tile_cuda_margin(w);
        tile_text_add(w->out, "tile_cuda_bound(&c, %s, %s, %s);\n", at, low, high);
    }
}

/* A lane function is compiled once in a source, whatever the number of its calls: inlined into
 * each of them a stencil takes a minute. */
static void write_wrapper(tile_cuda_writer *w, const char *name) {
    char guard[TILE_CUDA_OPERAND + 16];
    (void)snprintf(guard, sizeof guard, "TILE_CALL_%s\n", name);
    if (strstr(tile_text_get(w->calls), guard)) return;
    tile_text_add(w->calls,
                  "#ifndef %s#define %sstatic __device__ __noinline__ void call_%s(const tile_call "
                  "*c) {\n    %s(c);\n}\n#endif\n",
                  guard, guard, name, name);
}

static void touch_call(tile_cuda_writer *w, const tile_call_step *c) {
    const tile_node *n = c->node;
    for (int k = 0; k < c->n_in; k++) tile_cuda_reads(w, tile_node_in(w->p, n, k));
    for (int k = c->n_in; k < n->n_in; k++) tile_cuda_needs(w, tile_node_in(w->p, n, k));
    for (int k = 0; k < n->n_out; k++)
        if (c->wanted[k]) tile_cuda_writes(w, n->out + k);
    if (n->op->access) tile_cuda_does(w, &w->order->effect[n - w->p->node]);
    tile_cuda_begin(w);
    w->work = WORK_MOST;
}

static void write_call(tile_cuda_writer *w, const tile_call_step *c) {
    const tile_node *n = c->node;
    char name[TILE_CUDA_OPERAND];
    tile_cuda_note_family(w, n->op);
    touch_call(w, c);
    TILE_CUDA_LINE(w, "{\n");
    w->depth++;
    tile_cuda_margin(w);
    tile_text_add(w->out, "tile_call c = {};\n");
    for (int k = 0; k < c->n_in; k++) {
        tile_cuda_margin(w);
        tile_text_add(w->out, "c.in[%d] = arena + %zu;\n", k, c->in[k]);
        write_dims(w, "in_dims", k, &c->call.in_dims[k]);
    }
    for (int k = 0; k < n->n_out; k++) {
        tile_cuda_margin(w);
        if (c->wanted[k])
            tile_text_add(w->out, "c.out[%d] = arena + %zu;\n", k, c->out[k]);
        else
            tile_text_add(w->out, "c.out[%d] = 0;\n", k);
        write_dims(w, "out_dims", k, &c->call.out_dims[k]);
    }
    write_attr_fields(w, "c.attrs", &c->call.attrs);
    write_place(w, c);
    tile_cuda_margin(w);
    (void)snprintf(name, sizeof name, "%.60s_%s", n->op->name,
                   tile_dtype_short(tile_cuda_key(w, n)));
    write_wrapper(w, name);
    tile_text_add(w->out, "call_%s(&c);\n", name);
    w->depth--;
    tile_cuda_margin(w);
    tile_text_add(w->out, "}\n");
}

/* Steps */

static void write_node(tile_cuda_writer *w, const tile_step *step) {
    if (step->node->n_out && w->order->lone[step->node->out] &&
        step->node->op->kind != TILE_OP_STRUCTURE)
        tile_cuda_write_lone(w, step->node);
    else if (step->kind == TILE_STEP_CALL)
        write_call(w, &w->plan->call[step->first]);
    else
        tile_cuda_write_scalar(w, step);
}

void tile_cuda_write_steps(tile_cuda_writer *w, int32_t first, int32_t count) {
    for (int32_t k = first; k < first + count; k++) {
        const tile_step *step = &w->plan->step[k];
        switch (step->kind) {
        case TILE_STEP_STRIPS: tile_cuda_write_group(w, step); break;
        case TILE_STEP_CALL:
        case TILE_STEP_SCALAR: write_node(w, step); break;
        case TILE_STEP_LOOP:
            tile_cuda_write_loop(w, k);
            k += step->body;
            break;
        case TILE_STEP_KEEP:
        case TILE_STEP_KEPT: tile_cuda_write_kept(w, step); break;
        case TILE_STEP_WITHIN: tile_cuda_write_within(w, step); break;
        }
    }
}

/* The kernel */

static void write_body(tile_cuda_writer *w) {
    const int params = w->p->param_count ? (int)w->p->param_count : 1;
    tile_text_add(w->out,
                  "struct argument {\n"
                  "    tile_cuda_head head;\n"
                  "    tile_memory array[%d];\n"
                  "    uint64_t scalar[%d];\n"
                  "    tile_cuda_slot slot[%d];\n"
                  "};\n\n"
                  "static __device__ void run_block(const argument &l, unsigned char *arena, "
                  "int64_t linear,\n"
                  "                                 int64_t order, int64_t block0, int64_t block1, "
                  "int64_t block2) {\n",
                  params, params, w->p->slot_count ? (int)w->p->slot_count : 1);
    w->depth = 1;
    tile_cuda_write_steps(w, 0, w->plan->step_count);
    tile_text_add(w->out, "}\n\n"
                          "static __device__ void run(const argument &l, unsigned char *shared) {\n"
                          "    unsigned char *arena = shared;\n");
    if (tile_align(w->plan->bytes) > TILE_CUDA_SHARED_LEAST)
        tile_text_add(w->out, "    if (l.head.arena) arena = l.head.arena + blockIdx.x * "
                              "l.head.arena_stride;\n");
    tile_text_add(w->out,
                  "    for (int64_t order = blockIdx.x; order < l.head.blocks; order += gridDim.x) "
                  "{\n"
                  "        const int64_t linear = %s;\n"
                  "        int64_t row, block0, block1, block2;\n"
                  "        tile_cuda_divide(linear, l.head.grid[2], &row, &block2);\n"
                  "        tile_cuda_divide(row, l.head.grid[1], &block0, &block1);\n"
                  "        run_block(l, arena, linear, order, block0, block1, block2);\n"
                  "        __syncthreads();\n"
                  "    }\n"
                  "}\n",
                  w->p->reverse ? "l.head.blocks - 1 - order" : "order");
}

static void name_kernel(const tile_text *body, tile_cuda_kernel *kernel) {
    uint64_t hash[2] = {14695981039346656037u, 1099511628211u * 31};
    for (const char *c = tile_text_get(body); *c; c++)
        for (int k = 0; k < 2; k++)
            hash[k] = (hash[k] ^ (unsigned char)*c) * (k ? 0x9e3779b97f4a7c15u : 1099511628211u);
    (void)snprintf(kernel->name, sizeof kernel->name, "tile_kernel_%016llx%08llx",
                   (unsigned long long)hash[0], (unsigned long long)(hash[1] >> 32));
}

static tile_status finish(tile_cuda_writer *w, tile_cuda_kernel *kernel) {
    const tile_text *body = w->out;
    name_kernel(body, kernel);
    const char *id = kernel->name + strlen("tile_kernel_");
    kernel->families = w->families;
    kernel->arena_bytes = tile_align(w->plan->bytes);
    kernel->threads = (int)((tile_between(w->work, 32, TILE_CUDA_THREADS_MAX) + 31) / 32 * 32);
    tile_text_add(&kernel->text,
                  "%s\nnamespace tile_%s {\n%s}\n\n"
                  "extern \"C\" __global__ void __launch_bounds__(%d)\n"
                  "%s(const __grid_constant__ tile_%s::argument l) {\n"
                  "    TILE_DYNAMIC_SHARED(shared);\n"
                  "    tile_%s::run(l, shared);\n"
                  "}\n",
                  tile_text_get(w->calls), id, tile_text_get(body), TILE_CUDA_THREADS_MAX,
                  kernel->name, id, id);
    return body->failed || w->calls->failed || kernel->text.failed ? TILE_E_MEMORY : TILE_OK;
}

tile_status tile_cuda_write(const tile_executable *exe, unsigned mode, const int8_t *same,
                            tile_cuda_kernel *kernel) {
    tile_text body = {.data = NULL}, calls = {.data = NULL};
    tile_cuda_order order;
    *kernel = (tile_cuda_kernel){.families = 0};
    TILE_TRY(tile_cuda_order_make(exe, mode, same, &order));
    tile_cuda_writer w = {
        .p = &exe->program, .plan = &order.blocks, .order = &order, .out = &body, .calls = &calls};
    write_body(&w);
    const tile_status status = finish(&w, kernel);
    tile_cuda_order_clear(&order);
    tile_text_clear(&body);
    tile_text_clear(&calls);
    if (status) tile_cuda_kernel_clear(kernel);
    return status;
}

void tile_cuda_kernel_clear(tile_cuda_kernel *kernel) {
    tile_text_clear(&kernel->text);
    kernel->families = 0;
}

/* The prelude */

static void write_section(int family, tile_text *text) {
    const char *const *lines = tile_cuda_lines(family);
    if (!lines) return;
    tile_text_add(text, "#ifndef TILE_LANES_%d\n#define TILE_LANES_%d\n", family + 1, family + 1);
    for (int k = 0; lines[k]; k++) tile_text_add(text, "%s\n", lines[k]);
    tile_text_add(text, "#endif\n");
}

void tile_cuda_prelude(uint64_t families, tile_text *text) {
    tile_text_add(
        text,
        "/* CUDA C, generated by tiletape. */\n"
        "#ifndef TILE_DYNAMIC_SHARED\n"
        "typedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\n"
        "typedef long long int64_t;\ntypedef unsigned char uint8_t;\n"
        "typedef unsigned short uint16_t;\ntypedef unsigned uint32_t;\n"
        "typedef unsigned long long uint64_t;\n"
        "#define TILE_DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]\n"
        "#define TILE_LANE_NUMBER ((int)threadIdx.x)\n#define TILE_LANE_COUNT ((int)blockDim.x)\n"
        "#endif\n");
    write_section(-1, text);
    for (int f = 0; f < 63 && tile_cuda_lines(f); f++)
        if (families >> f & 1u) write_section(f, text);
}
