# check_contract.awk: each public declaration has a block above it that begins with its name and
# whose fields come in order. Declarations without a blank line between them share one block.

function report(line, text) { print FILENAME ":" line ": " text }

BEGIN { count = split("in special repeats errors source", fields, " ") }

function rank(word,    i) {
    for (i = 1; i <= count; i++) if (fields[i] == word) return i
    return 0
}

# A field stands in column 4, with its text from column 13 on; maths is indented further.
function check_field(line,    word) {
    if (line !~ /^ \* [a-z]+  /) return
    word = line
    sub(/^ \* /, "", word)
    sub(/ .*$/, "", word)
    if (!rank(word)) report(FNR, "no field of the contract: " word)
    else if (rank(word) <= last_rank) report(FNR, "field out of order: " word)
    else last_rank = rank(word)
    has[word] = 1
}

function begin_block(    word) {
    split("", has)
    last_rank = 0
    title = $0
    sub(/^\/\* */, "", title)
    sub(/:.*$/, "", title)
    in_block = 1
}

# The code of a line, without comments.
function strip(line) {
    if (in_comment) {
        if (!sub(/^.*\*\//, "", line)) return ""
        in_comment = 0
    }
    while (match(line, /\/\*([^*]|\*[^\/])*\*\//))
        line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
    if (sub(/\/\*.*$/, "", line)) in_comment = 1
    return line
}

function depth(text, open, close_,    copy) {
    copy = text
    return gsub(open, "", copy) - gsub(close_, "", copy)
}

# The name that a declaration declares: what stands before the first parenthesis.
function declared(text) {
    gsub(/__attribute__ *\(\([^)]*(\([^)]*\))?[^)]*\)\)/, "", text)
    sub(/ *\(.*$/, "", text)
    sub(/^.*[ *]/, "", text)
    return text
}

function check_declaration(    name, head) {
    head = text
    sub(/\{.*$/, "", head)
    if (head ~ /^typedef/ || head ~ /^(struct|enum|union)( [a-z_0-9]+)? *;?$/ || head !~ /\(/) {
        if (!covered && !remark) report(start, "no comment above a public declaration")
        return
    }
    name = declared(head)
    if (name ~ /^[A-Z_0-9]+$/ || head ~ /_(<[^(]*)?\(/ || text ~ /^template/) return
    if (!covered) { report(start, name ": no block above it"); return }
    if ((", " title ",") !~ (", " name ",")) report(start, name ": the block above names " title)
    if (head ~ /(^| )tile_status +(TILE_[A-Z_]+ +)?[a-z_0-9]+ *\(/ && !("errors" in has))
        report(start, name ": returns a status, has no field errors")
    sub(/^[^(]*\(/, "", head)
    if (gsub(/,/, "", head) > 7) report(start, name ": more than 8 parameters")
}

function end_declaration() { check_declaration(); text = "" }

# The first comment says what the file is.
FNR == 1 { in_comment = covered = continued = 0; text = ""; in_block = !/\*\//; next }

in_block {
    check_field($0)
    if (/\*\//) { in_block = 0; covered = 1 }
    next
}

# A macro, over several lines or one; guards and helper names with a trailing _ are private.
!text && (continued || /^#/) {
    if (!continued && /^#[ ]*define T(ILE|APE)_/ && !/_(H|H_)?$/ && !/_ *[(]/ && !/_H$/ &&
        !covered && !/\/\*/) report(FNR, "no comment above a public macro")
    continued = /\\$/
    next
}

!text && /^\/\*/ {
    begin_block()
    if (/\*\//) { in_block = 0; covered = 1 }
    next
}

!text && /^[ \t]*$/ { covered = 0; next }
!text && (/^extern "C" \{$/ || /^}/) { next }

{
    if (!text) { start = FNR; remark = 0 }
    if (/\/\*/) remark = 1
    text = text (text ? " " : "") strip($0)
    if (depth(text, "[(]", "[)]") == 0 && depth(text, "[{]", "[}]") == 0 && text ~ /[;}] *$/)
        end_declaration()
}
