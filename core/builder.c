/* builder.c: adds nodes to a program: checks, broadcasts, shape rules, reuse of equal nodes. */
#include "core/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/array.h"
#include "core/memory.h"
#include "core/status.h"
#include "core/struct_tile.h"

enum { TILE_ELEMENTS_MAX = 1 << 24, INPUTS_MAX = 32, HASH_MIN = 64 };

/* Where the program is. */
static _Thread_local const char *here_file = "";
static _Thread_local int here_line;

void tile_here(const char *file, int line) {
    here_file = file;
    here_line = line;
}

const char *tile_builder_file(const tile_builder *b) {
    return b->file ? b->file : here_file;
}

int tile_builder_line(const tile_builder *b) {
    return b->file ? b->line : here_line;
}

static const tile nothing = {NULL, -1};

bool tile_is_good(tile t) {
    return t.builder && t.id >= 0 && (!tile_is_struct(t) || tile_struct_value_of(t));
}

tile_dtype tile_dtype_of(tile t) {
    if (tile_is_struct(t)) return tile_struct_value_of(t)->dtype;
    return t.builder->program.value[t.id].dtype;
}

tile_shape tile_shape_of_tile(tile t) {
    if (tile_is_struct(t)) return tile_struct_value_of(t)->shape;
    return t.builder->program.value[t.id].shape;
}

tile tile_builder_fail(tile_builder *b, tile_status code, const char *format, ...) {
    if (!b) return nothing;
    if (!b->status) {
        const char *file = b->file ? b->file : here_file, *slash = strrchr(file, '/');
        va_list args;
        char reason[400];
        va_start(args, format);
        vsnprintf(reason, sizeof reason, format, args);
        va_end(args);
        b->status = code;
        snprintf(b->message, sizeof b->message, "kernel %s, %s:%d: %s", b->program.name,
                 slash ? slash + 1 : file, b->file ? b->line : here_line, reason);
    }
    return (tile){b, -1};
}

/* Notes the thread's last error as the builder's. */
static tile fail_with_last(tile_builder *b, tile_status code) {
    char reason[400];
    snprintf(reason, sizeof reason, "%s", tile_last_error());
    return tile_builder_fail(b, code, "%s", reason);
}

tile_builder *tile_builder_of(const tile *in, int n) {
    for (int k = 0; k < n; k++)
        if (in[k].builder) return in[k].builder;
    return NULL;
}

tile tile_result(tile t, int k) {
    if (!tile_is_good(t)) return t;
    return (tile){t.builder, t.id + k};
}

bool tile_shape_broadcast(tile_shape a, tile_shape b, tile_shape *out) {
    tile_shape shape = {.rank = a.rank > b.rank ? a.rank : b.rank};
    for (int d = 1; d <= shape.rank; d++) {
        const int64_t x = d <= a.rank ? a.extent[a.rank - d] : 1;
        const int64_t y = d <= b.rank ? b.extent[b.rank - d] : 1;
        if (x != y && x != 1 && y != 1) return false;
        shape.extent[shape.rank - d] = x == 1 ? y : x;
    }
    *out = shape;
    return true;
}

/* Whether t is a tile that may be used where the builder is. */
static bool check_operand(tile_builder *b, const char *op, tile t, int k) {
    if (!t.builder) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: operand %d is not a tile", op, k + 1);
        return false;
    }
    if (t.builder != b) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: operand %d is a tile of another kernel", op,
                          k + 1);
        return false;
    }
    if (tile_is_struct(t) && tile_struct_value_of(t)) {
        tile_builder_fail(b, TILE_E_DTYPE, "%s: operand %d is %s, wanted a member of it", op, k + 1,
                          tile_dtype_name(tile_dtype_of(t)));
        return false;
    }
    if (t.id < 0 || t.id >= b->program.value_count) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: operand %d is not a tile of this kernel", op,
                          k + 1);
        return false;
    }
    if (!tile_region_within(&b->program, b->region, b->program.value[t.id].region)) {
        tile_builder_fail(b, TILE_E_ARGUMENT,
                          "%s: operand %d was made inside a loop that has ended", op, k + 1);
        return false;
    }
    return true;
}

bool tile_builder_check_shape(tile_builder *b, const char *call, tile_shape shape) {
    char text[TILE_SHAPE_TEXT];
    bool good = shape.rank >= 0 && shape.rank <= TILE_RANK_MAX;
    int64_t count = 1;
    for (int d = 0; good && d < shape.rank; d++) {
        good = shape.extent[d] >= 1 && shape.extent[d] <= TILE_ELEMENTS_MAX / count;
        if (good) count *= shape.extent[d];
    }
    if (shape.rank < 0 || shape.rank > TILE_RANK_MAX)
        tile_builder_fail(b, TILE_E_SHAPE, "%s: a tile of rank %d, wanted 0 to %d", call,
                          shape.rank, TILE_RANK_MAX);
    else if (!good)
        tile_builder_fail(b, TILE_E_SHAPE,
                          "%s: a tile of shape %s; extents are at least 1, %d elements at most",
                          call, tile_shape_text(shape, text), TILE_ELEMENTS_MAX);
    return good;
}

static uint64_t mix(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *p = data;
    for (size_t k = 0; k < bytes; k++) hash = (hash ^ p[k]) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t hash_node(const tile_node *n, const int32_t *in, tile_dtype dtype,
                          tile_shape shape) {
    uint64_t h = UINT64_C(14695981039346656037);
    h = mix(h, &n->op, sizeof n->op);
    h = mix(h, &n->param, sizeof n->param);
    h = mix(h, &n->attrs, sizeof n->attrs);
    h = mix(h, in, (size_t)n->n_in * sizeof *in);
    h = mix(h, &dtype, sizeof dtype);
    return mix(h, shape.extent, (size_t)shape.rank * sizeof *shape.extent);
}

static bool same_node(const tile_program *p, const tile_node *a, const tile_node *n,
                      const int32_t *in, tile_dtype dtype, tile_shape shape) {
    return a->op == n->op && a->param == n->param && a->n_in == n->n_in &&
           a->bounded == n->bounded && (!n->op->access || a->epoch == n->epoch) &&
           !memcmp(&a->attrs, &n->attrs, sizeof a->attrs) &&
           (!n->n_in || !memcmp(&p->input[a->in], in, (size_t)n->n_in * sizeof *in)) &&
           p->value[a->out].dtype == dtype && tile_shape_equal(p->value[a->out].shape, shape);
}

static int32_t find_equal(const tile_builder *b, const tile_node *n, const int32_t *in,
                          tile_dtype dtype, tile_shape shape) {
    if (!b->hash_capacity) return -1;
    const uint32_t mask = (uint32_t)b->hash_capacity - 1;
    const tile_program *p = &b->program;
    for (uint32_t k = (uint32_t)hash_node(n, in, dtype, shape) & mask; b->hash[k];
         k = (k + 1) & mask) {
        const tile_node *a = &p->node[b->hash[k] - 1];
        if (same_node(p, a, n, in, dtype, shape) &&
            tile_region_within(p, b->region, p->value[a->out].region))
            return b->hash[k] - 1;
    }
    return -1;
}

static void insert_hash(tile_builder *b, int32_t node) {
    const tile_node *n = &b->program.node[node];
    const tile_value *v = &b->program.value[n->out];
    const uint32_t mask = (uint32_t)b->hash_capacity - 1;
    uint32_t k = (uint32_t)hash_node(n, &b->program.input[n->in], v->dtype, v->shape) & mask;
    while (b->hash[k]) k = (k + 1) & mask;
    b->hash[k] = node + 1;
}

static bool is_reusable(const tile_node *n) {
    return n->op->access <= TILE_ACCESS_LOAD && n->n_out == 1 && n->op != &tile_op_loop &&
           n->op != &tile_op_keep;
}

/* Rebuilt when half full; every reusable node is in it. */
static tile_status note_node(tile_builder *b, int32_t node) {
    if (!is_reusable(&b->program.node[node])) return TILE_OK;
    if (b->program.node_count * 2 < b->hash_capacity) {
        insert_hash(b, node);
        return TILE_OK;
    }
    const int32_t capacity = b->hash_capacity ? b->hash_capacity * 4 : HASH_MIN;
    int32_t *table = tile_alloc((size_t)capacity * sizeof *table);
    if (!table) return TILE_E_MEMORY;
    tile_free(b->hash);
    b->hash = table;
    b->hash_capacity = capacity;
    for (int32_t k = 0; k < b->program.node_count; k++)
        if (is_reusable(&b->program.node[k])) insert_hash(b, k);
    return TILE_OK;
}

typedef struct draft {
    tile_node node;
    int32_t in[INPUTS_MAX];
    tile_infer infer;
} draft;

static tile to_int64(tile_builder *b, tile t) {
    if (tile_dtype_of(t) == TILE_I64) return t;
    const tile_emission cast = {
        .op = tile_op_find("cast"), .n_in = 1, .in = {t}, .has_dtype = true, .dtype = TILE_I64};
    return tile_emit(b, &cast);
}

/* One window offset or bound: a rank-0 integer. */
static bool add_scalar(tile_builder *b, draft *d, const char *op, tile t, const char *what) {
    if (!check_operand(b, op, t, d->node.n_in)) return false;
    const tile_kind kind = tile_dtype_kind(tile_dtype_of(t));
    if (tile_shape_of_tile(t).rank || kind == TILE_KIND_FLOAT || kind == TILE_KIND_BOOL) {
        tile_builder_fail(b, TILE_E_DTYPE,
                          "%s: %s is %s of rank %d, expected a rank-0 integer tile", op, what,
                          tile_dtype_name(tile_dtype_of(t)), tile_shape_of_tile(t).rank);
        return false;
    }
    t = to_int64(b, t);
    if (!tile_is_good(t)) return false;
    d->in[d->node.n_in++] = t.id;
    return true;
}

/* Offsets: none at all means the origin; else one per dimension. */
static bool add_offsets(tile_builder *b, draft *d, const tile_emission *e, int rank) {
    const char *op = e->op->name;
    if (e->at.rank && e->at.rank != rank) {
        tile_builder_fail(b, TILE_E_SHAPE, "%s: the offset has %d dimensions, expected %d", op,
                          e->at.rank, rank);
        return false;
    }
    for (int k = rank; k < TILE_RANK_MAX; k++) {
        if (!e->at.shift[k]) continue;
        tile_builder_fail(b, TILE_E_SHAPE,
                          "%s: the offset is shifted in dimension %d, expected %d dimensions", op,
                          k, rank);
        return false;
    }
    const tile zero = e->at.rank ? nothing : tile_constant(b, TILE_I64, (tile_shape){.rank = 0}, 0);
    for (int k = 0; k < rank; k++) {
        if (!add_scalar(b, d, op, e->at.rank ? e->at.at[k] : zero, "the offset")) return false;
        d->node.attrs.shift[k] += e->at.shift[k];
    }
    for (int k = 0; e->bounds && k < 2 * rank; k++)
        if (!add_scalar(b, d, op, e->bounds[k], "a bound")) return false;
    d->node.bounded = e->bounds != NULL;
    return true;
}

static bool add_array(tile_builder *b, draft *d, const tile_emission *e) {
    const tile_program *p = &b->program;
    if (e->array.builder != b || e->array.index < 0 || e->array.index >= p->param_count ||
        p->param[e->array.index].kind != TILE_PARAM_ARRAY) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: not an array parameter of this kernel",
                          e->op->name);
        return false;
    }
    const tile_param_info *info = &p->param[e->array.index];
    d->node.param = e->array.index;
    d->infer.array_rank = info->rank;
    d->infer.array_dtype = info->dtype;
    return add_offsets(b, d, e, info->rank);
}

/* Brings the operands of an elementwise op to one shape. */
static bool broadcast_operands(tile_builder *b, const tile_emission *e, tile *in) {
    tile_shape shape = tile_shape_of_tile(in[0]);
    char text[2][TILE_SHAPE_TEXT];
    for (int k = 1; k < e->n_in; k++) {
        const tile_shape next = tile_shape_of_tile(in[k]);
        if (tile_shape_broadcast(shape, next, &shape)) continue;
        tile_builder_fail(b, TILE_E_SHAPE, "%s: a is %s, %c is %s", e->op->name,
                          tile_shape_text(shape, text[0]), 'a' + k, tile_shape_text(next, text[1]));
        return false;
    }
    const tile_op *broadcast = tile_op_find("broadcast");
    for (int k = 0; k < e->n_in; k++) {
        if (tile_shape_equal(tile_shape_of_tile(in[k]), shape)) continue;
        const tile_emission wide = {
            .op = broadcast, .n_in = 1, .in = {in[k]}, .has_shape = true, .shape = shape};
        in[k] = tile_emit(b, &wide);
        if (!tile_is_good(in[k])) return false;
    }
    return true;
}

static bool add_operands(tile_builder *b, draft *d, const tile_emission *e) {
    tile in[TILE_OP_IN];
    for (int k = 0; k < e->n_in; k++) {
        if (!check_operand(b, e->op->name, e->in[k], k)) return false;
        in[k] = e->in[k];
    }
    if (e->op->kind == TILE_OP_ELEMENTWISE && !broadcast_operands(b, e, in)) return false;
    d->infer.n_in = e->n_in;
    for (int k = 0; k < e->n_in; k++) {
        d->in[d->node.n_in++] = in[k].id;
        d->infer.in_shape[k] = tile_shape_of_tile(in[k]);
        d->infer.in_dtype[k] = tile_dtype_of(in[k]);
    }
    return true;
}

/* Offsets of ops on tiles (view, assign): only when some are given. */
static bool add_tile_offsets(tile_builder *b, draft *d, const tile_emission *e) {
    for (int k = 0; k < TILE_RANK_MAX; k++) d->node.attrs.shift[k] += e->at.shift[k];
    const int rank = d->infer.n_in ? d->infer.in_shape[0].rank : 0;
    bool some = false;
    for (int k = 0; k < e->at.rank; k++) some |= e->at.at[k].builder != NULL;
    if (e->at.rank && e->at.rank != rank) {
        tile_builder_fail(b, TILE_E_SHAPE, "%s: the offset has %d dimensions, expected %d",
                          e->op->name, e->at.rank, rank);
        return false;
    }
    for (int k = 0; some && k < rank; k++)
        if (!add_scalar(b, d, e->op->name, e->at.at[k], "the offset")) return false;
    return true;
}

static bool complete(tile_builder *b, draft *d, const tile_emission *e) {
    tile_infer *infer = &d->infer;
    infer->op = e->op;
    infer->attrs = &d->node.attrs;
    infer->want_shape = e->shape;
    if (!e->has_shape) infer->want_shape.rank = -1;
    infer->want_dtype = e->has_dtype ? e->dtype : TILE_DTYPES;
    infer->n_out = e->op->n_out;
    if (e->has_shape && !tile_builder_check_shape(b, e->op->name, e->shape)) return false;
    const tile_status status = e->op->infer(infer);
    if (status) {
        fail_with_last(b, status);
        return false;
    }
    for (int k = 0; k < infer->n_out; k++)
        if (!tile_builder_check_shape(b, e->op->name, infer->out_shape[k])) return false;
    d->node.n_out = infer->n_out;
    return true;
}

static tile append(tile_builder *b, const draft *d) {
    tile_program *p = &b->program;
    const int32_t node = tile_program_add_node(p, &d->node, d->in);
    if (node < 0 || tile_region_append(p, b->region, node)) return fail_with_last(b, TILE_E_MEMORY);
    tile first = {b, -1};
    for (int k = 0; k < d->node.n_out; k++) {
        const int32_t id = tile_program_add_value(p, d->infer.out_dtype[k], d->infer.out_shape[k],
                                                  node, k, b->region);
        if (id < 0) return fail_with_last(b, TILE_E_MEMORY);
        if (!k) first.id = p->node[node].out = id;
    }
    if (d->node.op->access > TILE_ACCESS_TAKE && first.id >= 0) /* previous values */
        p->value[first.id].shared = p->value[d->in[d->infer.n_in - 1]].shared;
    if (tile_node_has_effect(p, &p->node[node])) b->epoch++;
    if (note_node(b, node)) return fail_with_last(b, TILE_E_MEMORY);
    return first;
}

/* The builder of an operand, where the array has none: a handle that was forgotten is an error. */
static tile_builder *builder_of(const tile_emission *e) {
    tile_builder *b = tile_builder_of(e->in, e->n_in);
    return b ? b : tile_builder_of(e->at.at, e->at.rank);
}

tile tile_emit(tile_builder *b, const tile_emission *e) {
    if (!b) b = builder_of(e);
    if (!b) return nothing;
    if (b->status) return (tile){b, -1};
    if (!e->op) return tile_builder_fail(b, TILE_E_ARGUMENT, "an op that is not registered");
    if (tile_takes_struct(e)) return tile_emit_struct(b, e);
    tile promoted;
    if (tile_emit_promoted(b, e, &promoted)) return promoted;
    draft d = {.node = {.op = e->op,
                        .param = -1,
                        .region = -1,
                        .out = -1,
                        .attrs = e->attrs,
                        .epoch = b->epoch,
                        .file = tile_builder_file(b),
                        .line = tile_builder_line(b)}};
    if (!add_operands(b, &d, e)) return (tile){b, -1};
    if (e->op->access ? !add_array(b, &d, e) : !add_tile_offsets(b, &d, e)) return (tile){b, -1};
    if (!complete(b, &d, e)) return (tile){b, -1};
    if (e->op->indexed) b->program.value[d.in[0]].shared = true;
    if (is_reusable(&d.node)) {
        const int32_t equal =
            find_equal(b, &d.node, d.in, d.infer.out_dtype[0], d.infer.out_shape[0]);
        if (equal >= 0) return (tile){b, b->program.node[equal].out};
    }
    return append(b, &d);
}

tile tile_emit_elementwise(tile_builder *b, const char *op, int n, const tile *in) {
    tile_emission e = {.op = tile_op_find(op), .n_in = n};
    if (e.op && e.op->n_in != n)
        return tile_builder_fail(b, TILE_E_ARGUMENT, "%s: %d operands, expected %d", op, n,
                                 e.op->n_in);
    for (int k = 0; k < n && k < TILE_OP_IN; k++) e.in[k] = in[k];
    return tile_emit(b, &e);
}

tile tile_constant(tile_builder *b, tile_dtype dtype, tile_shape shape, double value) {
    if (tile_struct_of(dtype)) return tile_struct_zeros(b, dtype, shape);
    tile_emission e = {.op = tile_op_find("full"),
                       .has_shape = true,
                       .shape = shape,
                       .has_dtype = true,
                       .dtype = dtype};
    if (tile_is_float(dtype)) {
        e.attrs.real = value;
    } else {
        e.attrs.n[0] = (int64_t)value;
    }
    return tile_emit(b, &e);
}
