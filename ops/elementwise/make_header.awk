# make_header.awk: writes elementwise_ops.h, the public functions of the rows, from elementwise.def.
#
#   awk -f make_header.awk elementwise.def > elementwise_ops.h

function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
function unquote(s) { gsub(/^"|"$/, "", s); return s }

# Splits the row's arguments at the commas outside parentheses and strings, into field[1..count].
function split_row(text,    i, c, depth, quoted, start) {
    count = depth = quoted = 0
    start = 1
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "\"") quoted = !quoted
        if (quoted) continue
        depth += (c == "(") - (c == ")")
        if (c != "," || depth) continue
        field[++count] = trim(substr(text, start, i - start))
        start = i + 1
    }
    field[++count] = trim(substr(text, start))
}

function operands(kind) {
    if (kind ~ /^(UNARY|MATH1|CAST)$/) return 1
    return kind ~ /^(TERNARY|SELECT)$/ ? 3 : 2
}

# The "in" field of the contract.
function types_text(kind, n,    types, text) {
    if (kind == "SELECT") return "a bool; b, c of one type, any dtype"
    types = field[3]
    text = "any dtype but bool"
    if (types == "FLOATS") text = "any float dtype"
    if (types == "INTS") text = "any integer dtype"
    if (types == "BOOLS") text = "bool"
    if (types == "ALL") text = "any dtype"
    return (n > 1 ? "of one type: " : "") text
}

function print_block(kind, n,    k, d) {
    printf "\n/* tile_%s: %s.\n *\n", field[1], unquote(field[count - 1])
    printf " *   y = %s\n", (kind == "CAST" ? "(dtype)a" : tolower(field[2]))
    for (k = 1; k <= n && kind != "COMPARE"; k++) {
        d = field[3 + k]
        if (d ~ /^FULL/) printf " *   d%s += %s\n", substr("abc", k, 1), substr(d, 6, length(d) - 6)
    }
    printf " *\n * in       %s\n", types_text(kind, n)
    if (kind == "COMPARE") print " * returns  bool, a constant for gradients"
    if (field[count] != "\"\"") printf " * special  %s\n", unquote(field[count])
    printf " * errors   %sTILE_E_DTYPE\n */\n", (n > 1 ? "TILE_E_SHAPE; " : "")
}

function row(kind,    n, k, list, name) {
    n = operands(kind)
    name = "tile_" field[1]
    print_block(kind, n)
    list = "tile a"
    for (k = 2; k <= n; k++) list = list ", tile " substr("abc", k, 1)
    if (kind == "CAST") list = list ", tile_dtype dtype"
    printf "TILE_API tile %s(%s);\n", name, list
    macros = macros "#define " name "(...) (tile_here(__FILE__, __LINE__), " name \
        "(__VA_ARGS__))\n"
}

BEGIN {
    print "/* elementwise_ops.h: y = f(a, b, c) by element; operands broadcast as in NumPy."
    print " *"
    print " * Made from elementwise.def by make_header.awk. An upstream dy of exactly 0 contributes"
    print " * exactly 0. Formulas (tile_expr) know these functions without tile_. */"
    print "#ifndef TILE_OPS_ELEMENTWISE_OPS_H\n#define TILE_OPS_ELEMENTWISE_OPS_H\n"
    print "#include \"core/core_api.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif"
}

# A row runs from NAME( to the line that ends in a closing parenthesis outside all others.
/^[A-Z0-9]+\(/ { text = ""; open = 1 }
open {
    text = text " " trim($0)
    plain = text
    gsub(/"[^"]*"/, "", plain)
    if (gsub(/\(/, "", plain) != gsub(/\)/, "", plain)) next
    text = trim(text)
    at = index(text, "(")
    split_row(substr(text, at + 1, length(text) - at - 1))
    row(substr(text, 1, at - 1))
    open = 0
}

END {
    print "\n#ifdef __cplusplus\n}\n#endif\n"
    print "/* The calls note their place in the program's source. */"
    printf "%s\n#endif\n", macros
}
