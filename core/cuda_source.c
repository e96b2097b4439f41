/* cuda_source.c: the CUDA C text of a program: its block plan, step by step. */
#include "core/cuda_source.h"

#include <string.h>

#include "core/cuda_writer.h"
#include "core/memory.h"
#include "core/status.h"

static int64_t count_of(tile_shape shape) {
    int64_t n = 1;
    for (int d = 0; d < shape.rank; d++) n *= shape.extent[d];
    return n;
}

const char *tile_cuda_type(tile_dtype dtype) {
    static const char *const names[] = {
#define ROW(id, name, T, A, kind, numpy) [id] = #T,
        TILE_DTYPE_LIST(ROW)
#undef ROW
    };
    return names[dtype];
}

static const tile_value *value_of(const tile_cuda_writer *w, int32_t value) {
    return &w->p->value[value];
}

/* Which values are variables */

static bool is_lone(const tile_program *p, const tile_value *v) {
    if (count_of(v->shape) != 1) return false;
    const tile_op *op = p->node[v->node].op;
    if (v->result < 0) return v->result == -1; /* the index of a loop */
    if (op->kind == TILE_OP_ELEMENTWISE) return true;
    return op->kind == TILE_OP_STRUCTURE && op != &tile_op_loop && op != &tile_op_kept;
}

static void find_variables(tile_cuda_writer *w) {
    for (int32_t v = 0; v < w->p->value_count; v++) w->lone[v] = is_lone(w->p, value_of(w, v));
    for (int32_t r = 0; r < w->p->region_count; r++) {
        const tile_region *region = &w->p->region[r];
        for (int32_t k = 0; k < region->yield_count; k++) w->placed[region->yield[k]] = true;
        for (int32_t k = 0; k < region->count; k++) {
            const tile_node *n = &w->p->node[region->node[k]];
            int32_t first = 0, end = 0;
            if (n->op->kind == TILE_OP_COOPERATIVE) end = tile_inputs_of(w->p, n).tiles;
            if (n->op == &tile_op_keep) end = 1;
            if (n->op == &tile_op_loop) {
                first = 1;
                end = n->n_in;
            }
            for (int32_t i = first; i < end; i++) w->placed[tile_node_in(w->p, n, i)] = true;
        }
    }
}

/* Text */

void tile_cuda_margin(const tile_cuda_writer *w) {
    tile_text_add(w->out, "%*s", 4 * w->depth, "");
}

static void integer(int64_t x, char to[TILE_CUDA_OPERAND]) {
    if (x == INT64_MIN)
        (void)snprintf(to, TILE_CUDA_OPERAND, "(-9223372036854775807LL - 1)");
    else
        (void)snprintf(to, TILE_CUDA_OPERAND, "%lldLL", (long long)x);
}

/* A barrier, if the arena was used; what follows uses it. */
void tile_cuda_use_arena(tile_cuda_writer *w) {
    if (w->used) {
        tile_cuda_margin(w);
        tile_text_add(w->out, "__syncthreads();\n");
    }
    w->used = true;
}

static void arena_at(const tile_cuda_writer *w, int32_t value, const char *index,
                     char to[TILE_CUDA_OPERAND]) {
    (void)snprintf(to, TILE_CUDA_OPERAND, "((%s *)(arena + %zu))[%s]",
                   tile_cuda_type(value_of(w, value)->dtype), w->plan->place[value], index);
}

/* A value of one element. */
void tile_cuda_single(const tile_cuda_writer *w, int32_t value, char to[TILE_CUDA_OPERAND]) {
    if (w->lone[value])
        (void)snprintf(to, TILE_CUDA_OPERAND, "v%d", (int)value);
    else
        arena_at(w, value, "0", to);
}

/* Puts a lone value where others find it. */
void tile_cuda_place_lone(tile_cuda_writer *w, int32_t value) {
    char to[TILE_CUDA_OPERAND];
    if (!w->placed[value]) return;
    arena_at(w, value, "0", to);
    tile_cuda_margin(w);
    tile_text_add(w->out, "if (TILE_LANE_NUMBER == 0) %s = v%d;\n", to, (int)value);
}

/* Elementwise */

static void function_of(const tile_cuda_writer *w, const tile_node *n,
                        char name[TILE_CUDA_OPERAND]) {
    const tile_dtype out = value_of(w, n->out)->dtype;
    tile_dtype key = out;
    if (n->op->key != TILE_KEY_OUT0 && strcmp(n->op->name, "cast") != 0)
        key = value_of(w, tile_node_in(w->p, n, n->op->key == TILE_KEY_IN1))->dtype;
    (void)snprintf(name, TILE_CUDA_OPERAND, "%.60s_%s", n->op->name, tile_dtype_short(key));
}

static void note_family(tile_cuda_writer *w, const tile_op *op) {
    const int family = tile_op_family(op);
    if (family >= 0) w->families |= (uint64_t)1 << family;
}

static void write_op(tile_cuda_writer *w, const tile_strip_step *s, bool alone) {
    const tile_node *n = s->node;
    char name[TILE_CUDA_OPERAND];
    function_of(w, n, name);
    note_family(w, n->op);
    tile_cuda_margin(w);
    tile_text_add(w->out, "const %s v%d = %s(", tile_cuda_type(value_of(w, n->out)->dtype),
                  (int)n->out, name);
    for (int k = 0; k < s->n_in; k++) {
        const int32_t v = tile_node_in(w->p, n, k);
        char operand[TILE_CUDA_OPERAND];
        if (alone)
            tile_cuda_single(w, v, operand);
        else if (!s->in_step[k])
            (void)snprintf(operand, TILE_CUDA_OPERAND, "v%d", (int)v);
        else
            arena_at(w, v, "i", operand);
        tile_text_add(w->out, k ? ", %s" : "%s", operand);
    }
    tile_text_add(w->out, ");\n");
}

/* Whether a group of single elements uses the arena. */
static bool lone_group_uses_arena(const tile_cuda_writer *w, const tile_strip_step *s,
                                  int32_t count) {
    for (int32_t k = 0; k < count; k++) {
        if (w->placed[s[k].node->out]) return true;
        for (int i = 0; i < s[k].n_in; i++)
            if (!w->lone[tile_node_in(w->p, s[k].node, i)]) return true;
    }
    return false;
}

static void write_strips(tile_cuda_writer *w, const tile_step *step) {
    const tile_strip_step *s = &w->plan->strip[step->first];
    if (step->elements == 1) {
        if (lone_group_uses_arena(w, s, step->count)) tile_cuda_use_arena(w);
        for (int32_t k = 0; k < step->count; k++) {
            write_op(w, &s[k], true);
            tile_cuda_place_lone(w, s[k].node->out);
        }
        return;
    }
    tile_cuda_use_arena(w);
    tile_cuda_margin(w);
    tile_text_add(w->out,
                  "for (int64_t i = TILE_LANE_NUMBER; i < %lldLL; i += TILE_LANE_COUNT) {\n",
                  (long long)step->elements);
    w->depth++;
    for (int32_t k = 0; k < step->count; k++) {
        char to[TILE_CUDA_OPERAND];
        write_op(w, &s[k], false);
        if (!s[k].out_step) continue;
        arena_at(w, s[k].node->out, "i", to);
        tile_cuda_margin(w);
        tile_text_add(w->out, "%s = v%d;\n", to, (int)s[k].node->out);
    }
    w->depth--;
    tile_cuda_margin(w);
    tile_text_add(w->out, "}\n");
}

/* Cooperative */

static void write_dims(const tile_cuda_writer *w, const char *which, int k, const tile_dims *dims) {
    tile_cuda_margin(w);
    tile_text_add(w->out, "c.%s[%d].rank = %d;", which, k, (int)dims->rank);
    for (int d = 0; d < dims->rank; d++)
        tile_text_add(w->out, " c.%s[%d].extent[%d] = %d;", which, k, d, (int)dims->extent[d]);
    tile_text_add(w->out, "\n");
}

static void write_attrs(const tile_cuda_writer *w, const tile_attrs *attrs) {
    uint64_t bits;
    char number[TILE_CUDA_OPERAND];
    memcpy(&bits, &attrs->real, sizeof bits);
    for (int d = 0; d < TILE_DIMS; d++) {
        if (!attrs->n[d]) continue;
        integer(attrs->n[d], number);
        tile_cuda_margin(w);
        tile_text_add(w->out, "c.attrs.n[%d] = %s;\n", d, number);
    }
    if (!bits) return;
    tile_cuda_margin(w);
    tile_text_add(w->out, "c.attrs.real = tile_f64_of_bits(0x%llxULL); /* %.17g */\n",
                  (unsigned long long)bits, attrs->real);
}

static void write_place(const tile_cuda_writer *w, const tile_call_step *c) {
    const tile_node *n = c->node;
    char at[TILE_CUDA_OPERAND], low[TILE_CUDA_OPERAND], high[TILE_CUDA_OPERAND];
    for (int d = 0; d < TILE_DIMS; d++) {
        const int64_t shift = c->call.attrs.shift[d];
        char by[TILE_CUDA_OPERAND], to[TILE_CUDA_OPERAND] = "0";
        if (d >= c->offsets && !shift) continue;
        if (d < c->offsets) tile_cuda_single(w, tile_node_in(w->p, n, c->n_in + d), to);
        integer(shift, by);
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

static const char *key_name(const tile_cuda_writer *w, const tile_node *n) {
    if (n->op->key == TILE_KEY_OUT0) return tile_dtype_short(value_of(w, n->out)->dtype);
    return tile_dtype_short(
        value_of(w, tile_node_in(w->p, n, n->op->key == TILE_KEY_IN1 ? 1 : 0))->dtype);
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

static void write_call(tile_cuda_writer *w, const tile_call_step *c) {
    const tile_node *n = c->node;
    char name[TILE_CUDA_OPERAND];
    note_family(w, n->op);
    tile_cuda_use_arena(w);
    tile_cuda_margin(w);
    tile_text_add(w->out, "{\n");
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
    write_attrs(w, &c->call.attrs);
    write_place(w, c);
    tile_cuda_margin(w);
    (void)snprintf(name, sizeof name, "%.60s_%s", n->op->name, key_name(w, n));
    write_wrapper(w, name);
    tile_text_add(w->out, "call_%s(&c);\n", name);
    w->depth--;
    tile_cuda_margin(w);
    tile_text_add(w->out, "}\n");
}

/* Steps */

void tile_cuda_write_steps(tile_cuda_writer *w, int32_t first, int32_t count) {
    for (int32_t k = first; k < first + count; k++) {
        const tile_step *step = &w->plan->step[k];
        switch (step->kind) {
        case TILE_STEP_STRIPS: write_strips(w, step); break;
        case TILE_STEP_CALL: write_call(w, &w->plan->call[step->first]); break;
        case TILE_STEP_SCALAR: tile_cuda_write_scalar(w, step); break;
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
                          "    const int64_t *grid = l.head.grid;\n"
                          "    unsigned char *arena = shared;\n"
                          "    if (l.head.arena) arena = l.head.arena + blockIdx.x * "
                          "l.head.arena_stride;\n");
    tile_text_add(w->out,
                  "    for (int64_t order = blockIdx.x; order < l.head.blocks; order += gridDim.x) "
                  "{\n"
                  "        const int64_t linear = %s;\n"
                  "        const int64_t row = linear / grid[2];\n"
                  "        run_block(l, arena, linear, order, row / grid[1], row %% grid[1], "
                  "linear %% grid[2]);\n"
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
    tile_text_add(&kernel->text,
                  "%s\nnamespace tile_%s {\n%s}\n\n"
                  "extern \"C\" __global__ void %s(const __grid_constant__ tile_%s::argument l) {\n"
                  "    TILE_DYNAMIC_SHARED(shared);\n"
                  "    tile_%s::run(l, shared);\n"
                  "}\n",
                  tile_text_get(w->calls), id, tile_text_get(body), kernel->name, id, id);
    return body->failed || w->calls->failed || kernel->text.failed ? TILE_E_MEMORY : TILE_OK;
}

tile_status tile_cuda_write(const tile_executable *exe, tile_cuda_kernel *kernel) {
    tile_text body = {.data = NULL}, calls = {.data = NULL};
    tile_cuda_writer w = {
        .exe = exe, .p = &exe->program, .plan = &exe->blocks, .out = &body, .calls = &calls};
    const size_t values = (size_t)exe->program.value_count + 1;
    *kernel = (tile_cuda_kernel){.families = 0};
    w.lone = tile_alloc(values * sizeof *w.lone);
    w.placed = tile_alloc(values * sizeof *w.placed);
    tile_status status = TILE_E_MEMORY;
    if (w.lone && w.placed) {
        find_variables(&w);
        write_body(&w);
        status = finish(&w, kernel);
    }
    tile_free(w.lone);
    tile_free(w.placed);
    tile_text_clear(&body);
    tile_text_clear(&calls);
    if (status) tile_cuda_kernel_clear(kernel);
    return status;
}

void tile_cuda_kernel_clear(tile_cuda_kernel *kernel) {
    tile_text_clear(&kernel->text);
    kernel->families = 0;
}

size_t tile_cuda_arena(const tile_executable *exe) {
    return tile_align(exe->blocks.bytes);
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
