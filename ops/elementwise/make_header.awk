# make_header.awk: writes elementwise_ops.h, the public functions of the rows, from elementwise.def.
#
#   awk -f make_header.awk elementwise.def > elementwise_ops.h

# Splits the row's arguments at the commas outside parentheses and strings, into field[1..count].
function split_row(text,    i, c, depth, quoted, start) {
    count = 0; depth = 0; quoted = 0; start = 1
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "\"") quoted = !quoted
        if (quoted) continue
        if (c == "(") depth++
        if (c == ")") depth--
        if (c == "," && depth == 0) { field[++count] = trim(substr(text, start, i - start)); start = i + 1 }
    }
    field[++count] = trim(substr(text, start))
}
function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
function unquote(s) { gsub(/^"|"$/, "", s); return s }

function types_text(types) {
    if (types == "FLOATS") return "f32, f64"
    if (types == "INTS") return "i32, i64, u8, u32, u64"
    if (types == "BOOLS") return "bool"
    if (types == "ALL") return "any dtype"
    return "any dtype but bool"
}

function operands(kind) {
    if (kind ~ /^(UNARY|MATH1|CAST)$/) return 1
    return kind ~ /^(TERNARY|SELECT)$/ ? 3 : 2
}

function row(kind,    n, k, name, list, letters, d, special) {
    n = operands(kind); name = field[1]; letters = "abc"
    printf "\n/* tile_%s: %s.\n *\n *   y = %s\n", name, unquote(field[count - 1]), tolower(kind == "CAST" ? "(dtype)a" : field[2])
    for (k = 1; k <= n && kind != "COMPARE"; k++) {
        d = field[3 + k]
        if (d ~ /^FULL/) printf " *   d%s += %s\n", substr(letters, k, 1), substr(d, 6, length(d) - 6)
    }
    printf " *\n * in       %s\n", (kind == "SELECT" ? "a bool; b, c of one type, any dtype" : (n > 1 ? "of one type: " : "") types_text(field[3]))
    if (kind == "COMPARE") print " * returns  bool, a constant for gradients"
    special = unquote(field[count])
    if (special != "") printf " * special  %s\n", special
    printf " * errors   %sTILE_E_DTYPE\n */\n", (n > 1 ? "TILE_E_SHAPE; " : "")
    list = "tile a"
    for (k = 2; k <= n; k++) list = list ", tile " substr(letters, k, 1)
    if (kind == "CAST") list = list ", tile_dtype dtype"
    printf "TILE_API tile tile_%s(%s);\n", name, list
    macros = macros sprintf("#define tile_%s(...) (tile_here(__FILE__, __LINE__), tile_%s(__VA_ARGS__))\n", name, name)
}

BEGIN {
    print "/* elementwise_ops.h: y = f(a, b, c), element by element; operands broadcast as in NumPy."
    print " *"
    print " * Made from elementwise.def by make_header.awk. In derivatives an upstream dy of exactly 0 contributes"
    print " * exactly 0. Formulas (tile_expr) know these functions by their names without tile_. */"
    print "#ifndef TILE_OPS_ELEMENTWISE_OPS_H\n#define TILE_OPS_ELEMENTWISE_OPS_H\n"
    print "#include \"core/core_api.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif"
}

# A row runs from NAME( to the line that ends in a closing parenthesis outside all others.
/^[A-Z0-9]+\(/ { text = ""; open = 1 }
open {
    text = text " " trim($0)
    plain = text; gsub(/"[^"]*"/, "", plain)
    if (gsub(/\(/, "", plain) == gsub(/\)/, "", plain)) {
        text = trim(text); at = index(text, "(")
        split_row(substr(text, at + 1, length(text) - at - 1))
        row(substr(text, 1, at - 1))
        open = 0
    }
}

END {
    print "\n#ifdef __cplusplus\n}\n#endif\n\n/* The calls note their place in the program's source. */"
    printf "%s", macros
    print "\n#endif"
}
