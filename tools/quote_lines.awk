# quote_lines.awk: makes C string constants of the lines of a text, for an initialiser.
# With -v sections=1 a line "TILE_SOURCE_OF type_X" begins the constant NAME_X, what stands before
# the first is left out, and so are lines with TILE_NO_SOURCE; last comes NAME_LIST(X).

function begin_section(type) {
    if (type) types = types " X(" type ")"
    if (open) print "    NULL};"
    open = type
    if (type) print "static const char *const " name "_" type "[] = {"
}

sections && /^ *TILE_SOURCE_OF / {
    sub(/^.*type_/, "")
    begin_section($1)
    next
}
sections && !open { next }
sections && /TILE_NO_SOURCE/ { next }
/^[ \t]*$/ { next }
/^#/ { next }
{
    gsub(/\\/, "\\\\")
    gsub(/"/, "\\\"")
    print "    \"" $0 "\","
}

END {
    if (!sections) exit
    begin_section("")
    print "#define " name "_LIST(X)" types
}
