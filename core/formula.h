/* formula.h: a parsed formula; between formula_parse.c, which makes it, and formula.c, which
 * finds its types and emits it. */
#ifndef TILE_CORE_FORMULA_H
#define TILE_CORE_FORMULA_H

#include "core/builder.h"

typedef enum formula_kind { FORMULA_NUMBER, FORMULA_OPERAND, FORMULA_CALL } formula_kind;

typedef struct formula_node {
    formula_kind kind;
    int place; /* in the formula's text, for the caret */
    double number;
    int operand;       /* which of the named tiles */
    const tile_op *op; /* operators are calls too */
    int n_arg, arg[TILE_OP_IN];
    bool slash;           /* "/": not between integers */
    bool cast;            /* to dtype */
    tile_dtype dtype;     /* of the result; TILE_DTYPES: a number, or a choice of numbers */
    tile_dtype arg_dtype; /* what numbers among the operands become; TILE_DTYPES: as the result */
    bool guarded;         /* 0 where the guard is 0 */
} formula_node;

typedef struct formula_state {
    tile_builder *b;
    const char *text;
    int n_name;
    const char *const *name;
    const tile *operand;
    int guard;          /* operand that guards products and quotients, or -1 */
    formula_node *node; /* at least as many as the text has bytes */
    int count;
    int at, depth; /* of the parser */
} formula_state;

/* Parses the text; returns the root, or -1 when the builder has an error. */
int tile_formula_parse(formula_state *s);

/* Notes an error: the reason, the formula, a caret under the place. Returns -1. */
int tile_formula_fail(formula_state *s, int place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
