/* formula_parse.c: the text of a formula to a tree.
 *
 *   choice  = or [ "?" choice ":" choice ]        or   = and { "||" and }
 *   and     = equal { "&&" equal }                equal = less { ("==" | "!=") less }
 *   less    = sum { ("<" | "<=" | ">" | ">=") sum } sum  = product { ("+" | "-") product }
 *   product = sign { ("*" | "/") sign }           sign = { "-" | "+" | "!" } primary
 *   primary = number | name | name "(" choice { "," choice } ")" | "(" choice ")" */
#define _POSIX_C_SOURCE 200809L /* uselocale */
#include "core/formula.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 200, NAME_BYTES = 64 };

int tile_formula_fail(formula_state *s, int place, const char *format, ...) {
    enum { WINDOW = 80 };
    char reason[200];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    const int length = (int)strlen(s->text);
    int first = place > WINDOW / 2 ? place - WINDOW / 2 : 0;
    if (length - first < WINDOW) first = length > WINDOW ? length - WINDOW : 0;
    char line[WINDOW + 1];
    snprintf(line, sizeof line, "%s", s->text + first);
    for (char *c = line; *c; c++)
        if (isspace((unsigned char)*c)) *c = ' ';
    tile_builder_fail(s->b, TILE_E_FORMULA, "formula: %s\n  %s\n  %*s^", reason, line,
                      place - first, "");
    return -1;
}

static int add_node(formula_state *s, formula_kind kind, int place) {
    s->node[s->count] = (formula_node){
        .kind = kind, .place = place, .dtype = TILE_DTYPES, .arg_dtype = TILE_DTYPES};
    return s->count++;
}

/* Replaces a call on numbers by its result, computed in float64 by the op itself. */
static void fold(formula_state *s, int call) {
    formula_node *n = &s->node[call];
    double value[TILE_OP_IN], y = 0;
    const void *in[TILE_OP_IN];
    tile_dtype dtype[TILE_OP_IN];
    tile_infer infer = {
        .op = n->op, .n_in = n->n_arg, .want_shape = {.rank = -1}, .want_dtype = TILE_DTYPES};
    tile_attrs attrs = {0};
    infer.attrs = &attrs;
    for (int k = 0; k < n->n_arg; k++) {
        const formula_node *arg = &s->node[n->arg[k]];
        if (arg->kind != FORMULA_NUMBER) return;
        value[k] = arg->number;
        in[k] = &value[k];
        dtype[k] = infer.in_dtype[k] = TILE_F64;
    }
    if (n->cast || n->op->infer(&infer) || infer.out_dtype[0] != TILE_F64) return;
    const tile_strip strip = n->op->strip(n->op, dtype, TILE_F64);
    if (!strip) return;
    strip(in, &y, 1);
    n->kind = FORMULA_NUMBER;
    n->number = y;
}

static int add_call(formula_state *s, int place, const tile_op *op, int n, const int *arg) {
    for (int k = 0; k < n; k++)
        if (arg[k] < 0) return -1;
    const int call = add_node(s, FORMULA_CALL, place);
    s->node[call].op = op;
    s->node[call].n_arg = n;
    memcpy(s->node[call].arg, arg, (size_t)n * sizeof *arg);
    fold(s, call);
    return call;
}

static int add_operator(formula_state *s, int place, const char *name, int n, const int *arg) {
    const tile_op *op = tile_op_find(name);
    if (!op) return tile_formula_fail(s, place, "the library has no op %s", name);
    return add_call(s, place, op, n, arg);
}

static void skip_space(formula_state *s) {
    while (isspace((unsigned char)s->text[s->at])) s->at++;
}

/* Whether the text goes on with the token; if so, behind it. */
static bool take(formula_state *s, const char *token) {
    skip_space(s);
    const size_t length = strlen(token);
    if (strncmp(s->text + s->at, token, length) != 0) return false;
    s->at += (int)length;
    return true;
}

static bool is_name_start(char c) {
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_name_part(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static int unexpected(formula_state *s, const char *wanted) {
    skip_space(s);
    const char c = s->text[s->at];
    if (!c) return tile_formula_fail(s, s->at, "the formula ends, expected %s", wanted);
    return tile_formula_fail(s, s->at, "'%c', expected %s", isprint((unsigned char)c) ? c : '?',
                             wanted);
}

static int parse_choice(formula_state *s);

/* strtod with a decimal point, whatever the program's locale. */
static double read_number(const char *from, char **end) {
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) return strtod(from, end);
    const locale_t old = uselocale(c);
    const double value = strtod(from, end);
    uselocale(old);
    freelocale(c);
    return value;
}

static int parse_number(formula_state *s) {
    const int place = s->at;
    const char *from = s->text + place;
    const size_t digits = strspn(from, "0123456789");
    char *end;
    if (from[0] == '0' && (from[1] == 'x' || from[1] == 'X'))
        return tile_formula_fail(s, place, "a hexadecimal number");
    const double value = read_number(from, &end);
    if (!isfinite(value)) return tile_formula_fail(s, place, "the number is too large");
    if (from + digits == end && value >= 0x1p53 && strtoull(from, NULL, 10) != (uint64_t)value)
        return tile_formula_fail(s, place, "the integer is above 2^53 and not exact");
    if (is_name_part(*end) || *end == '.') {
        s->at = (int)(end - s->text);
        return unexpected(s, "an operator after the number");
    }
    s->at = (int)(end - s->text);
    const int n = add_node(s, FORMULA_NUMBER, place);
    s->node[n].number = value;
    return n;
}

/* f32(x), float32(x) and the like: the type of that name, or TILE_DTYPES. */
static tile_dtype find_dtype(const char *name) {
    int d = 0;
    while (d < TILE_DTYPES && strcmp(name, tile_dtype_short((tile_dtype)d)) != 0 &&
           strcmp(name, tile_dtype_name((tile_dtype)d)) != 0)
        d++;
    return (tile_dtype)d;
}

static int parse_arguments(formula_state *s, int *arg) {
    int n = 0;
    if (take(s, ")")) return 0;
    do {
        const int place = s->at, node = parse_choice(s);
        if (node < 0) return -1;
        if (n == TILE_OP_IN) return tile_formula_fail(s, place, "more operands than any op has");
        arg[n++] = node;
    } while (take(s, ","));
    return take(s, ")") ? n : unexpected(s, "',' or ')'");
}

static int parse_call(formula_state *s, int place, const char *name) {
    const tile_dtype dtype = find_dtype(name);
    const tile_op *op = tile_op_find(dtype == TILE_DTYPES ? name : "cast");
    if (!op || op->kind != TILE_OP_ELEMENTWISE)
        return tile_formula_fail(s, place, "no function is named %s", name);
    int arg[TILE_OP_IN];
    const int n = parse_arguments(s, arg);
    if (n < 0) return -1;
    if (n != op->n_in)
        return tile_formula_fail(s, place, "%s takes %d operand%s, got %d", name, op->n_in,
                                 op->n_in == 1 ? "" : "s", n);
    if (dtype == TILE_DTYPES) return add_call(s, place, op, n, arg);
    const int call = add_node(s, FORMULA_CALL, place);
    s->node[call].op = op;
    s->node[call].n_arg = 1;
    s->node[call].arg[0] = arg[0];
    s->node[call].cast = true;
    s->node[call].dtype = dtype;
    return call;
}

static int parse_name(formula_state *s) {
    const int place = s->at;
    char name[NAME_BYTES];
    while (is_name_part(s->text[s->at])) s->at++;
    const int length = s->at - place;
    if (length >= NAME_BYTES) return tile_formula_fail(s, place, "the name is too long");
    memcpy(name, s->text + place, (size_t)length);
    name[length] = '\0';
    if (take(s, "(")) return parse_call(s, place, name);
    for (int k = 0; k < s->n_name; k++) {
        if (strcmp(name, s->name[k]) != 0) continue;
        const int n = add_node(s, FORMULA_OPERAND, place);
        s->node[n].operand = k;
        return n;
    }
    return tile_formula_fail(s, place, "no operand is named %s", name);
}

static int parse_primary(formula_state *s) {
    skip_space(s);
    const char c = s->text[s->at];
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)s->text[s->at + 1])))
        return parse_number(s);
    if (is_name_start(c)) return parse_name(s);
    if (!take(s, "(")) return unexpected(s, "a number, a name or '('");
    const int inner = parse_choice(s);
    if (inner < 0) return -1;
    return take(s, ")") ? inner : unexpected(s, "')'");
}

static int parse_sign(formula_state *s) {
    if (s->depth >= DEPTH_MAX) return tile_formula_fail(s, s->at, "nested too deeply");
    s->depth++;
    skip_space(s);
    const int place = s->at;
    const bool minus = take(s, "-");
    const bool negated = !minus && take(s, "!");
    int n = minus || negated || take(s, "+") ? parse_sign(s) : parse_primary(s);
    if (n >= 0 && (minus || negated))
        n = add_operator(s, place, minus ? "neg" : "logical_not", 1, &n);
    s->depth--;
    return n;
}

/* Binary operators by level; within a level the longer token first. */
static const struct operator_row {
    int level;
    const char *token, *op;
} operators[] = {
    {0, "||", "logical_or"}, {1, "&&", "logical_and"}, {2, "==", "equal"},
    {2, "!=", "not_equal"},  {3, "<=", "less_equal"},  {3, ">=", "greater_equal"},
    {3, "<", "less"},        {3, ">", "greater"},      {4, "+", "add"},
    {4, "-", "sub"},         {5, "*", "mul"},          {5, "/", "div"},
};
enum { OPERATORS = sizeof operators / sizeof *operators, LEVELS = 6 };

static int parse_level(formula_state *s, int level) {
    if (level == LEVELS) return parse_sign(s);
    int left = parse_level(s, level + 1);
    for (int k = 0; left >= 0 && k < OPERATORS; k++) {
        skip_space(s);
        const int place = s->at;
        if (operators[k].level != level || !take(s, operators[k].token)) continue;
        const int right = parse_level(s, level + 1);
        left = add_operator(s, place, operators[k].op, 2, (int[]){left, right});
        if (left >= 0) s->node[left].slash = s->text[place] == '/';
        k = -1;
    }
    return left;
}

static int parse_choice(formula_state *s) {
    if (s->depth >= DEPTH_MAX) return tile_formula_fail(s, s->at, "nested too deeply");
    s->depth++;
    int n = parse_level(s, 0);
    const int place = (skip_space(s), s->at);
    if (n >= 0 && take(s, "?")) {
        const int yes = parse_choice(s);
        if (yes >= 0 && !take(s, ":")) unexpected(s, "':'");
        const int no = yes >= 0 && !s->b->status ? parse_choice(s) : -1;
        n = add_operator(s, place, "select", 3, (int[]){n, yes, no});
    }
    s->depth--;
    return n;
}

int tile_formula_parse(formula_state *s) {
    const int root = parse_choice(s);
    if (root < 0) return -1;
    skip_space(s);
    return s->text[s->at] ? unexpected(s, "an operator or the end") : root;
}
