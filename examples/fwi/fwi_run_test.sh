#!/bin/sh
# fwi_run_test.sh: the program as a user runs it: result, files, refusals, Ctrl-C.
set -u
fwi=examples/fwi/fwi
export TILETAPE_DATA=examples/fwi/data
work=${TEST_TMPDIR:-$(mktemp -d)}
# 61 x 189 samples, 400 steps: a second or two a run.
quick="--spacing=50 --frequency=2 --duration=2 --shots=2 --iterations=3"
failures=0

fail() {
    echo "failed: $*"
    failures=$((failures + 1))
}

# run NAME OPTIONS...: output in $work/NAME, pictures in $work/NAME.d
run() {
    name=$1
    shift
    "$fwi" $quick --out="$work/$name.d" "$@" >"$work/$name" 2>"$work/$name.err" ||
        fail "$name: exit $?: $(cat "$work/$name.err")"
}

# value NAME KEY: from the result line, which is the last one.
value() {
    tail -n 1 "$work/$1" | sed -n "s/^result .*\\b$2=\([0-9.]*\).*/\1/p"
}

# less A B WHAT
less() {
    awk "BEGIN { exit !(\"$1\" != \"\" && $1 + 0 < $2 + 0) }" || fail "$3: $1 is not below $2"
}

# refused WORDS OPTIONS...: exit 2 and one line on stderr that holds the words.
refused() {
    words=$1
    shift
    "$fwi" --out="$work/refused.d" "$@" >"$work/refused" 2>"$work/refused.err"
    code=$?
    [ "$code" = 2 ] || fail "$*: exit $code, wanted 2"
    [ "$(wc -l <"$work/refused.err")" = 1 ] || fail "$*: not one line: $(cat "$work/refused.err")"
    grep -qF -- "$words" "$work/refused.err" || fail "$*: says $(cat "$work/refused.err")"
}

run lbfgs
less "$(value lbfgs misfit_ratio)" 0.5 "misfit of L-BFGS"
less "$(value lbfgs model_error_ratio)" 1 "model error of L-BFGS"
[ "$(grep -cE '^ +[0-3] ' "$work/lbfgs")" = 4 ] || fail "not a line for each iteration"
for picture in true start inverted gradient gather; do
    [ "$(head -c 8 "$work/lbfgs.d/$picture.png" | tail -c 7 | head -c 3)" = PNG ] ||
        fail "$picture.png is no PNG"
done

run adam --optimizer adam
less "$(value adam misfit_ratio)" 1 "misfit of Adam"
run free --top=free
less "$(value free misfit_ratio)" 1 "misfit under a free surface"

# Everything but the time is the same for any number of threads, and follows the seed.
misfits() {
    awk '$1 ~ /^([0-9]+|trial)$/ { print $1, $2, $3, $4, $5 }' "$work/$1"
}
run one --noise=0.1 --threads=1
run two --noise=0.1 --threads=2
run other --noise=0.1 --seed=2
[ "$(misfits one)" = "$(misfits two)" ] || fail "threads change the result"
[ "$(misfits one)" != "$(misfits lbfgs)" ] || fail "noise changes nothing"
[ "$(misfits one)" != "$(misfits other)" ] || fail "the seed changes nothing"

# A model of one's own.
run own --data="$work/lbfgs.d/inverted.npy" --data-spacing 50
less "$(value own misfit_ratio)" 1 "misfit of a model of one's own"

refused "--dt of at most" --dt 0.02
refused "--spacing of at most" --frequency 12
refused "--frequency of at most" --spacing 60
refused "--shots" --spacing=50 --frequency=2 --shots=200
refused "--spacing" --spacing 5000 --frequency 0.01
refused "absent.npy" --data "$work/absent.npy"
head -c 500 "$work/lbfgs.d/inverted.npy" >"$work/short.npy"
refused "short.npy" --data "$work/short.npy"
refused "is no folder" --out="$work/lbfgs"

# Ctrl-C ends the search, the result is still written.
"$fwi" $quick --iterations=100000 --optimizer=adam --out="$work/stopped.d" >"$work/stopped" 2>&1 &
pid=$!
while kill -0 "$pid" 2>/dev/null && ! grep -qE '^ +1 ' "$work/stopped"; do sleep 0.1; done
kill -INT "$pid"
wait "$pid" || fail "exit $? after Ctrl-C"
less "$(value stopped misfit_ratio)" 1 "misfit after Ctrl-C"
[ -s "$work/stopped.d/inverted.npy" ] || fail "no model after Ctrl-C"

[ "$failures" = 0 ]
