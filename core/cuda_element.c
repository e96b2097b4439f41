/* cuda_element.c: CUDA C of one op on one element: maths, windows, values that every thread
 * computes. */
#include <string.h>

#include "core/cuda_writer.h"

static const tile_value *value_of(const tile_cuda_writer *w, int32_t value) {
    return &w->p->value[value];
}

static int number_of(const tile_cuda_writer *w, const tile_node *n) {
    return (int)(n - w->p->node);
}

void tile_cuda_note_family(tile_cuda_writer *w, const tile_op *op) {
    const int family = tile_op_family(op);
    if (family >= 0) w->families |= (uint64_t)1 << family;
}

tile_dtype tile_cuda_key(const tile_cuda_writer *w, const tile_node *n) {
    const bool second = n->op->key == TILE_KEY_IN1;
    /* A cast is named by what it casts to. */
    if (n->op->key == TILE_KEY_OUT0 || !strcmp(n->op->name, "cast"))
        return value_of(w, n->out)->dtype;
    return value_of(w, tile_node_in(w->p, n, second))->dtype;
}

/* "add_f32(", or "load_element_f32(&q12, " and so on. */
static void write_name(tile_cuda_writer *w, const tile_node *n) {
    tile_cuda_note_family(w, n->op);
    const char *name = n->op->element ? n->op->element : n->op->name;
    tile_text_add(w->out, "%s_%s(", name, tile_dtype_short(tile_cuda_key(w, n)));
    if (n->op->element) tile_text_add(w->out, "&q%d, ", number_of(w, n));
}

void tile_cuda_write_call_of(tile_cuda_writer *w, const tile_node *n,
                             char operand[][TILE_CUDA_OPERAND]) {
    const int count = n->op->access ? 0 : (int)n->n_in;
    const bool makes = n->n_out && n->op->access < TILE_ACCESS_ADD;
    tile_cuda_margin(w);
    if (makes)
        tile_text_add(w->out, "const %s v%d = ", tile_cuda_type(value_of(w, n->out)->dtype),
                      (int)n->out);
    write_name(w, n);
    if (n->op->element && !n->op->access)
        tile_text_add(w->out, "&d%d, %s%s", number_of(w, n), operand[0], count ? ", " : "");
    if (n->op->access) tile_text_add(w->out, "%s, %s", operand[0], operand[1]);
    if (n->op->access && n->op->n_in > n->op->indexed) tile_text_add(w->out, ", %s", operand[2]);
    for (int k = 0; k < count; k++)
        tile_text_add(w->out, k ? ", %s" : "%s", operand[k + (n->op->element != NULL)]);
    if (n->op->access)
        tile_text_add(w->out, "); /* %s: %s */\n", w->p->param[n->param].name, n->op->math);
    else
        tile_text_add(w->out, "); /* %s */\n", n->op->math);
}

/* Windows */

/* low and high of a dimension of a window, as expressions. */
static void bounds_of(tile_cuda_writer *w, const tile_node *n, int d, char low[TILE_CUDA_OPERAND],
                      char high[TILE_CUDA_OPERAND]) {
    const tile_inputs in = tile_inputs_of(w->p, n);
    (void)snprintf(low, TILE_CUDA_OPERAND, "0");
    (void)snprintf(high, TILE_CUDA_OPERAND, "l.array[%d].extent[%d]", (int)n->param, d);
    if (!in.bounds) return;
    tile_cuda_single(w, tile_node_in(w->p, n, in.tiles + in.offsets + 2 * d), low);
    tile_cuda_single(w, tile_node_in(w->p, n, in.tiles + in.offsets + 2 * d + 1), high);
}

/* "const int64_t o12_0 = ...;": where the window begins. */
static void write_offset(tile_cuda_writer *w, const tile_node *n, int d) {
    const tile_inputs in = tile_inputs_of(w->p, n);
    char at[TILE_CUDA_OPERAND] = "0", by[TILE_CUDA_OPERAND];
    if (in.offsets) tile_cuda_single(w, tile_node_in(w->p, n, in.tiles + d), at);
    tile_cuda_integer(n->attrs.shift[d], by);
    TILE_CUDA_LINE(w, "const int64_t o%d_%d = ", number_of(w, n), d);
    if (!in.offsets)
        tile_text_add(w->out, "tile_cuda_held(0, %s);\n", by);
    else
        tile_text_add(w->out, "tile_cuda_held(%s, %s);\n", at, by);
}

static void write_dimension(tile_cuda_writer *w, const tile_node *n, int d, int nest,
                            int64_t extent) {
    const int number = number_of(w, n), param = (int)n->param;
    char low[TILE_CUDA_OPERAND], high[TILE_CUDA_OPERAND];
    write_offset(w, n, d);
    bounds_of(w, n, d, low, high);
    if (n->op->indexed && d == n->attrs.n[0])
        TILE_CUDA_LINE(w,
                       "const int64_t low%d = tile_cuda_low(%s, l.array[%d].extent[%d]), "
                       "high%d = tile_cuda_high(low%d, %s, l.array[%d].extent[%d]);\n",
                       number, low, param, d, number, number, high, param, d);
    else if (nest < 0)
        TILE_CUDA_LINE(w, "tile_span_at(&s%d, o%d_%d, &l.array[%d], %d, %s, %s);\n", number, number,
                       d, param, d, low, high);
    else
        TILE_CUDA_LINE(w, "tile_span_along(&s%d, %d, %lld, o%d_%d, &l.array[%d], %d, %s, %s);\n",
                       number, nest, (long long)extent, number, d, param, d, low, high);
}

void tile_cuda_write_span(tile_cuda_writer *w, const tile_node *n) {
    const int number = number_of(w, n);
    int dimension[TILE_RANK_MAX], nest = 0;
    const tile_shape shape = tile_cuda_window_shape(w->order, n, dimension);
    const char *type = tile_cuda_type(w->p->param[n->param].dtype);
    const bool reads = n->op->access == TILE_ACCESS_LOAD;
    TILE_CUDA_LINE(w, "tile_span s%d = tile_span_begin(); /* %s: a window of %s */\n", number,
                   n->op->name, w->p->param[n->param].name);
    for (int d = 0; d < w->p->param[n->param].rank; d++) {
        const bool along = nest < shape.rank && dimension[nest] == d;
        write_dimension(w, n, d, along ? nest : -1, along ? shape.extent[nest] : 1);
        nest += along;
    }
    TILE_CUDA_LINE(w, "%s%s *const p%d = (%s%s *)l.array[%d].%s + s%d.at;\n", reads ? "const " : "",
                   type, number, reads ? "const " : "", type, (int)n->param,
                   reads ? "read" : "write", number);
    tile_cuda_write_attrs(w, n);
}

/* Lone values */

static void write_lone_source(tile_cuda_writer *w, const tile_node *n) {
    const int number = number_of(w, n);
    char operand[TILE_OP_IN + 1][TILE_CUDA_OPERAND];
    if (n->op->access) {
        tile_cuda_write_span(w, n);
        (void)snprintf(operand[0], TILE_CUDA_OPERAND, "p%d", number);
        (void)snprintf(operand[1], TILE_CUDA_OPERAND, "!s%d.none", number);
    } else {
        TILE_CUDA_LINE(w, "const tile_dims d%d = {};\n", number);
        tile_cuda_write_attrs(w, n);
        (void)snprintf(operand[0], TILE_CUDA_OPERAND, "0");
        for (int k = 0; k < n->n_in; k++)
            tile_cuda_single(w, tile_node_in(w->p, n, k), operand[k + 1]);
    }
    tile_cuda_write_call_of(w, n, operand);
}

void tile_cuda_write_lone(tile_cuda_writer *w, const tile_node *n) {
    char operand[TILE_OP_IN][TILE_CUDA_OPERAND];
    for (int k = 0; k < n->n_in; k++) tile_cuda_needs(w, tile_node_in(w->p, n, k));
    if (n->op->access) tile_cuda_does(w, &w->order->effect[n - w->p->node]);
    tile_cuda_will_place(w, n->out);
    tile_cuda_begin(w);
    if (n->op->element) {
        write_lone_source(w, n);
    } else {
        for (int k = 0; k < n->n_in; k++) tile_cuda_single(w, tile_node_in(w->p, n, k), operand[k]);
        tile_cuda_write_call_of(w, n, operand);
    }
    tile_cuda_place_lone(w, n->out);
}
