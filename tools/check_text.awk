# check_text.awk: the rules that need no parser: lengths, first line, includes, nesting.

function report(line, text) { print file ":" line ": " text }

# An excess of size is excused by a reason in the file; they are matched when the file ends.
function excess(line, text) { excesses++; pending[excesses] = line ": " text }

function begin_file() {
    finish_file()
    file = FILENAME
    name = file
    sub(/^.*\//, "", name)
    folder = file ~ /\// ? file : ""
    sub(/\/.*$/, "", folder)
    code = name ~ /\.(c|h|cc|cu|inc|def)$/
    sized = name ~ /\.(c|h|cu|inc)$/ && !(folder == "tests" && name ~ /\.h$/) # those are C++
    library = folder ~ /^(core|ops|tape|cuda)$/ && name !~ /_test\.cc$/ && file !~ /\/emit\//
    function_limit = name ~ /(\.cu|_kernel\.inc)$/ ? 80 : 60
    excesses = reasons = inside = macro = 0
}

function finish_file(    i, limit) {
    if (!file) return
    limit = name ~ /\.(c|cu)$/ ? 500 : name ~ /\.h$/ ? 400 : 0
    if (limit && lines > limit) excess(lines, lines " lines, limit " limit)
    for (i = reasons + 1; i <= excesses; i++) print file ":" pending[i]
    if (reasons > excesses) report(1, "a size reason that nothing needs")
    for (i = 1; i <= reasons; i++) print "reason " file
}

function check_first_line() {
    if (code && index($0, "/* " name ": ") != 1) report(1, "first line is not /* " name ": ...")
    if (name ~ /\.awk$/ && index($0, "# " name) != 1) report(1, "first line is not # " name ": ...")
}

function check_include(    to) {
    if (name == "tiletape.h") return # the one that has all of them
    to = $0
    sub(/^[^"]*"/, "", to)
    sub(/\/.*$/, "", to)
    if (folder == "core" && to ~ /^(ops|tape|cuda)$/ || folder == "ops" && to ~ /^(tape|cuda)$/ ||
        folder == "tape" && to == "cuda" || folder == "cuda" && to == "tape" || to == "tests")
        report(FNR, folder "/ includes upward: " to "/")
}

function check_function() {
    if (!inside && /\) \{$/) inside = FNR
    if (inside && /^}/) {
        if (FNR - inside + 1 > function_limit)
            excess(inside, "function of " FNR - inside + 1 " lines, limit " function_limit)
        inside = 0
    }
    match($0, /^ */)
    if (inside && RLENGTH >= 20 && /^ *(} else|if|for|while|switch|do)( .*)?\{$/)
        excess(FNR, "nested deeper than 4")
}

function check_macro() {
    if (!macro && /^#[ ]*define/) macro = FNR
    if (!macro) return
    if (/(^|[^a-z_])(for|while) \(/ && !/while \(0\)/) excess(FNR, "a loop in a macro")
    if (/\\$/) return
    if (FNR - macro + 1 > 8) excess(macro, "macro of " FNR - macro + 1 " lines, limit 8")
    macro = 0
}

FNR == 1 { begin_file(); check_first_line() }

{ lines = FNR }

length($0) > 100 { excess(FNR, length($0) " columns, limit 100") }
/[^ -~\t]/ { report(FNR, "not ASCII") }
/[ \t]$/ { report(FNR, "space at the end of a line") }
/^\t/ && code { report(FNR, "a tab") }
/^(\/\*|\/\/| \*) ?[-=*][-=*][-=*]/ && code { report(FNR, "a banner") }
/\/\* size: [^*]+\*\// && code { reasons++ }

library && /^#[ ]*include "/ { check_include() }
library && /(^|[^a-z_"])(abort|exit|printf|puts|perror) ?\(/ && name ~ /\.(c|h)$/ && !/^ ?\/?\*/ {
    report(FNR, "the library never prints, aborts or exits")
}
sized { check_function(); check_macro() }

END { finish_file() }
