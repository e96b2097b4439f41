#!/bin/sh
# flatten_header.sh HEADER FOLDER...: prints HEADER with every `#include "..."` of a file of ours
# put in its place. A .h comes once, like its guard; a table (.def, .inc) each time it is named.
# FOLDERs are where "core/x.h" is looked for: the source tree, then the generated one.
header=$1
shift
exec awk -v header="$header" -v folders="$*" '
function locate(name,    i, path, line) {
    for (i = 1; i <= count; i++) {
        path = folder[i] "/" name
        if ((getline line < path) >= 0) { close(path); return path }
    }
    print "flatten_header.sh: " name ": not found" > "/dev/stderr"
    failed = 1
    exit 1
}
function emit(name,    path, line, inner) {
    path = locate(name)
    seen[name] = 1
    while ((getline line < path) > 0) {
        if (line !~ /^[ \t]*#[ \t]*include[ \t]*"/) { print line; continue }
        inner = line
        sub(/^[^"]*"/, "", inner)
        sub(/".*$/, "", inner)
        if (!(inner ~ /\.h$/ && inner in seen)) emit(inner)
    }
    close(path)
}
BEGIN { count = split(folders, folder, " "); emit(header); exit failed }
'
