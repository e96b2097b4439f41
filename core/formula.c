/* formula.c: types of a parsed formula, its ops, and the public call. */
#include "core/formula.h"

#include <ctype.h>
#include <string.h>

#include "core/memory.h"
#include "core/status.h"

/* Numbers take the type of the first operand of the call that has one; all that have one agree. The
 * first operand of select, by which its kernel is not chosen, does not count. */
static bool find_arg_dtype(formula_state *s, formula_node *n) {
    const formula_node *first = NULL;
    for (int k = n->op->key == TILE_KEY_IN1; k < n->n_arg; k++) {
        const formula_node *arg = &s->node[n->arg[k]];
        if (arg->dtype == TILE_DTYPES) continue;
        if (first && first->dtype != arg->dtype) {
            tile_formula_fail(s, n->place, "%s and %s are mixed", tile_dtype_name(first->dtype),
                              tile_dtype_name(arg->dtype));
            return false;
        }
        if (!first) first = arg;
    }
    n->arg_dtype = first ? first->dtype : TILE_DTYPES;
    return true;
}

/* The type of the result by the op's own rule, with numbers as dtype. TILE_DTYPES: an error. */
static tile_dtype result_dtype(formula_state *s, const formula_node *n, tile_dtype number) {
    tile_attrs attrs = {0};
    tile_infer infer = {.op = n->op,
                        .n_in = n->n_arg,
                        .attrs = &attrs,
                        .want_shape = {.rank = -1},
                        .want_dtype = TILE_DTYPES};
    for (int k = 0; k < n->n_arg; k++) {
        const tile_dtype dtype = s->node[n->arg[k]].dtype;
        infer.in_dtype[k] = dtype == TILE_DTYPES ? number : dtype;
    }
    if (!tile_infer_promoted(&infer)) return infer.out_dtype[0];
    tile_formula_fail(s, n->place, "%s", tile_last_error());
    return TILE_DTYPES;
}

static bool find_call_dtype(formula_state *s, formula_node *n) {
    if (n->cast) return true;
    if (!find_arg_dtype(s, n)) return false;
    if (n->arg_dtype == TILE_DTYPES) { /* numbers only: the type may come from outside */
        const tile_dtype dtype = result_dtype(s, n, TILE_F64);
        if (dtype == TILE_F64) return true;
        if (dtype != TILE_DTYPES) tile_formula_fail(s, n->place, "%s of numbers only", n->op->name);
        return false;
    }
    if (n->op == tile_op_find("div") && !tile_is_float(n->arg_dtype)) {
        if (n->slash) {
            tile_formula_fail(s, n->place, "/ between integers (%s); div(a, b) rounds down",
                              tile_dtype_name(n->arg_dtype));
            return false;
        }
        n->op = tile_op_find("floor_div");
    }
    n->dtype = result_dtype(s, n, n->arg_dtype);
    return n->dtype != TILE_DTYPES;
}

/* Nodes stand in the list after what they are made of. */
static bool find_dtypes(formula_state *s) {
    for (int i = 0; i < s->count; i++) {
        formula_node *n = &s->node[i];
        if (n->kind == FORMULA_OPERAND) {
            const tile t = s->operand[n->operand];
            if (!tile_is_good(t)) {
                tile_formula_fail(s, n->place, "the operand is not a tile");
                return false;
            }
            n->dtype = tile_dtype_of(t);
        }
        if (n->kind == FORMULA_CALL && !find_call_dtype(s, n)) return false;
    }
    return true;
}

/* Turns products and quotients by what is 0 where the guard is 0 into their guarded forms. */
static void guard_call(formula_state *s, formula_node *n) {
    const formula_node *a = &s->node[n->arg[0]];
    const formula_node *b = n->n_arg > 1 ? &s->node[n->arg[1]] : a;
    const formula_node *c = n->n_arg > 2 ? &s->node[n->arg[2]] : a;
    const char *op = n->op->name;
    if (!strcmp(op, "mul") && (a->guarded || b->guarded)) {
        if (!a->guarded) {
            const int swap = n->arg[0];
            n->arg[0] = n->arg[1];
            n->arg[1] = swap;
        }
        n->op = tile_op_find("guarded_mul");
        n->guarded = true;
    } else if (!strcmp(op, "div") && a->guarded) {
        n->op = tile_op_find("guarded_div");
        n->guarded = true;
    } else if (!strcmp(op, "neg") || !strcmp(op, "add") || !strcmp(op, "sub")) {
        n->guarded = a->guarded && b->guarded;
    } else if (!strcmp(op, "select")) {
        n->guarded = b->guarded && c->guarded;
    }
}

static void find_guards(formula_state *s) {
    for (int i = 0; i < s->count; i++) {
        formula_node *n = &s->node[i];
        if (n->kind == FORMULA_NUMBER) n->guarded = n->number == 0;
        if (n->kind == FORMULA_OPERAND) n->guarded = n->operand == s->guard;
        if (n->kind == FORMULA_CALL) guard_call(s, n);
    }
}

static tile emit_number(formula_state *s, const formula_node *n, tile_dtype dtype) {
    if (!tile_is_float(dtype) && !tile_dtype_holds(dtype, n->number)) {
        tile_formula_fail(s, n->place, "%g beside %s", n->number, tile_dtype_name(dtype));
        return (tile){s->b, -1};
    }
    return tile_constant(s->b, dtype, (tile_shape){.rank = 0}, n->number);
}

/* dtype: what a number becomes. */
static tile emit_node(formula_state *s, int node, tile_dtype dtype) {
    const formula_node *n = &s->node[node];
    if (n->kind == FORMULA_NUMBER) return emit_number(s, n, dtype);
    if (n->kind == FORMULA_OPERAND) return s->operand[n->operand];
    if (n->cast && s->node[n->arg[0]].dtype == TILE_DTYPES)
        return emit_node(s, n->arg[0], n->dtype);
    tile_emission emission = {
        .op = n->op, .n_in = n->n_arg, .has_dtype = n->cast, .dtype = n->dtype};
    for (int k = 0; k < n->n_arg; k++) {
        emission.in[k] =
            emit_node(s, n->arg[k], n->arg_dtype == TILE_DTYPES ? dtype : n->arg_dtype);
        if (!tile_is_good(emission.in[k])) return (tile){s->b, -1};
    }
    return tile_emit(s->b, &emission);
}

static tile parse_and_emit(formula_state *s) {
    const int root = tile_formula_parse(s);
    if (root < 0 || !find_dtypes(s)) return (tile){s->b, -1};
    if (s->node[root].dtype == TILE_DTYPES) {
        tile_formula_fail(s, s->node[root].place,
                          "only numbers, which have no type without an operand");
        return (tile){s->b, -1};
    }
    if (s->guard >= 0) find_guards(s);
    return emit_node(s, root, s->node[root].dtype);
}

tile tile_formula_emit(tile_builder *b, const char *formula, int n, const char *const *names,
                       const tile *operands, const char *guard) {
    if (b->status) return (tile){b, -1};
    formula_state s = {
        .b = b, .text = formula, .n_name = n, .name = names, .operand = operands, .guard = -1};
    for (int k = 0; guard && k < n; k++)
        if (!strcmp(names[k], guard)) s.guard = k;
    s.node = tile_alloc((strlen(formula) + 1) * sizeof *s.node);
    if (!s.node) return tile_builder_fail(b, TILE_E_MEMORY, "formula: memory ran out");
    const tile result = parse_and_emit(&s);
    tile_free(s.node);
    return result;
}

/* Cuts "ws, xs" into names, in place. Returns how many, or -1 with an error noted. */
static int split_names(tile_builder *b, char *text, const char **name) {
    int n = 0;
    for (char *at = text; at;) {
        char *comma = strchr(at, ',');
        if (comma) *comma = '\0';
        while (isspace((unsigned char)*at)) at++;
        for (char *end = at + strlen(at); end > at && isspace((unsigned char)end[-1]); end--)
            end[-1] = '\0';
        bool good = isalpha((unsigned char)*at) || *at == '_';
        for (const char *c = at; *c; c++) good = good && (isalnum((unsigned char)*c) || *c == '_');
        if (!good || n == TILE_CARRIED_MAX) {
            tile_builder_fail(b, TILE_E_FORMULA, "tile_expr: operand %d, \"%s\", %s", n + 1, at,
                              good ? "is one too many" : "is not an identifier");
            return -1;
        }
        name[n++] = at;
        at = comma ? comma + 1 : NULL;
    }
    return n;
}

tile tile_formula(const char *formula, const char *names, tile_list operands) {
    enum { TEXT_BYTES = 1024 };
    char text[TEXT_BYTES];
    const char *name[TILE_CARRIED_MAX];
    const int count = operands.count;
    if (count > TILE_CARRIED_MAX || count < 0) operands.count = 0;
    tile_builder *b = tile_builder_of(operands.item, operands.count);
    if (!b) {
        tile_fail(TILE_E_ARGUMENT, "tile_expr: no operand is a tile");
        return (tile){NULL, -1};
    }
    if (b->status) return (tile){b, -1};
    if (!formula || !names || strlen(names) >= TEXT_BYTES)
        return tile_builder_fail(b, TILE_E_ARGUMENT, "tile_expr: formula or names %s",
                                 formula && names ? "too long" : "NULL");
    memcpy(text, names, strlen(names) + 1);
    const int n = split_names(b, text, name);
    if (n < 0) return (tile){b, -1};
    if (n != count)
        return tile_builder_fail(b, TILE_E_FORMULA, "tile_expr: %d operands, %d names", count, n);
    return tile_formula_emit(b, formula, n, name, operands.item, NULL);
}
