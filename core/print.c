/* print.c: the text form of a program.
 *
 *   kernel scatter(x: f32[?], n: int)
 *     %2 = load x[%1 + 1] : f32[256]          one node a line: results, op, operands, type
 *     %5 = full {real = 0.5} : f32[]          constants of an op in braces, those that are not 0
 *     %9 = loop %3, %6 from %7 = %5 {         count, index, carried tiles and where they start
 *     ... = loop %3 while %7, %6 from ... {   at most %3 iterations, while the first one is true */
#include <inttypes.h>

#include "core/array.h"
#include "core/builder.h"
#include "core/status.h"

static void print_type(FILE *out, const tile_value *v) {
    fprintf(out, "%s[", tile_dtype_short(v->dtype));
    for (int d = 0; d < v->shape.rank; d++)
        fprintf(out, d ? ", %" PRId64 : "%" PRId64, v->shape.extent[d]);
    fputs(v->shared ? "] shared" : "]", out);
}

static void print_results(FILE *out, const tile_program *p, const tile_node *n) {
    for (int32_t k = 0; k < n->n_out; k++) fprintf(out, k ? ", %%%d" : "%%%d", (int)(n->out + k));
    (void)p;
    if (n->n_out) fputs(" = ", out);
}

/* x[%1 + 2, %3]: where a window begins. */
static void print_window(FILE *out, const tile_program *p, const tile_node *n, int tiles,
                         int rank) {
    if (n->op->access) fprintf(out, " %s", p->param[n->param].name);
    fputs("[", out);
    for (int d = 0; d < rank; d++) {
        fprintf(out, d ? ", %%%d" : "%%%d", (int)tile_node_in(p, n, tiles + d));
        if (n->attrs.shift[d])
            fprintf(out, n->attrs.shift[d] < 0 ? " - %" PRIu64 : " + %" PRIu64,
                    n->attrs.shift[d] < 0 ? (uint64_t)0 - (uint64_t)n->attrs.shift[d]
                                          : (uint64_t)n->attrs.shift[d]);
    }
    fputs("]", out);
    if (!n->bounded) return;
    for (int d = 0; d < rank; d++)
        fprintf(out, d ? ", %%%d..%%%d" : " within %%%d..%%%d",
                (int)tile_node_in(p, n, tiles + rank + 2 * d),
                (int)tile_node_in(p, n, tiles + rank + 2 * d + 1));
}

static void print_attrs(FILE *out, const tile_node *n, bool shifts) {
    const char *begin = " {";
    for (int d = 0; shifts && d < TILE_RANK_MAX; d++) {
        if (!n->attrs.shift[d]) continue;
        fprintf(out, "%sshift%d = %" PRId64, begin, d, n->attrs.shift[d]);
        begin = ", ";
    }
    for (int d = 0; d < TILE_DIMS; d++) {
        if (!n->attrs.n[d]) continue;
        fprintf(out, "%sn%d = %" PRId64, begin, d, n->attrs.n[d]);
        begin = ", ";
    }
    if (n->attrs.real != 0 || n->attrs.real != n->attrs.real) {
        fprintf(out, "%sreal = %.17g", begin, n->attrs.real);
        begin = ", ";
    }
    if (*begin == ',') fputs("}", out);
}

static void print_region(FILE *out, const tile_program *p, int32_t region, int indent);

static void print_loop(FILE *out, const tile_program *p, const tile_node *n, int indent) {
    const tile_region *body = &p->region[n->region];
    fprintf(out, "loop %%%d%s", (int)tile_node_in(p, n, 0), n->attrs.n[0] ? " down" : "");
    if (tile_loop_is_while(n)) fprintf(out, " while %%%d", (int)(body->argument + 1));
    fprintf(out, ", %%%d from ", (int)body->argument);
    for (int32_t k = 0; k < body->yield_count; k++)
        fprintf(out, "%%%d = %%%d ", (int)(body->argument + 1 + k), (int)tile_node_in(p, n, 1 + k));
    fputs("{\n", out);
    print_region(out, p, n->region, indent + 2);
    fprintf(out, "%*snext", indent + 2, "");
    for (int32_t k = 0; k < body->yield_count; k++) fprintf(out, " %%%d", (int)body->yield[k]);
    fprintf(out, "\n%*s}\n", indent, "");
}

static void print_node(FILE *out, const tile_program *p, const tile_node *n, int indent) {
    fprintf(out, "%*s", indent, "");
    print_results(out, p, n);
    if (n->op == &tile_op_loop) {
        print_loop(out, p, n, indent);
        return;
    }
    int rank = n->op->access ? p->param[n->param].rank : 0, tiles = n->n_in - rank;
    if (n->op->access && n->bounded) tiles -= 2 * rank;
    fputs(n->op->name, out);
    if (n->op->access) print_window(out, p, n, tiles, rank);
    for (int k = 0; k < tiles; k++)
        fprintf(out, k || n->op->access ? ", %%%d" : " %%%d", (int)tile_node_in(p, n, k));
    if (n->what) fprintf(out, " \"%s\"", n->what);
    print_attrs(out, n, !n->op->access);
    if (n->n_out) {
        fputs(" : ", out);
        print_type(out, tile_node_out(p, n, 0));
    }
    fputs("\n", out);
}

static void print_region(FILE *out, const tile_program *p, int32_t region, int indent) {
    const tile_region *r = &p->region[region];
    for (int32_t k = 0; k < r->count; k++) print_node(out, p, &p->node[r->node[k]], indent);
}

tile_status tile_program_print(const tile_program *p, FILE *out) {
    fprintf(out, "kernel %s(", p->name);
    for (int32_t k = 0; k < p->param_count; k++) {
        const tile_param_info *info = &p->param[k];
        fprintf(out, "%s%s: %s", k ? ", " : "", info->name, tile_dtype_short(info->dtype));
        if (info->kind != TILE_PARAM_ARRAY) continue;
        for (int d = 0; d < info->rank; d++) fputs(d ? ", ?" : "[?", out);
        fputs(info->rank ? "]" : "[]", out);
    }
    fprintf(out, ")%s\n", p->reverse ? " reverse" : "");
    print_region(out, p, 0, 2);
    TILE_CHECK(!ferror(out), TILE_E_FILE, "kernel %s: the file does not take its text", p->name);
    return TILE_OK;
}
