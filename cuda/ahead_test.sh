#!/bin/sh
# ahead_test.sh: nvcc made a cubin of every CUDA source; each is an ELF file.
found=0
for cubin in $(find -L . -name '*.cubin'); do
    found=$((found + 1))
    if [ "$(od -An -c -N4 "$cubin" | tr -d ' ')" != '177ELF' ]; then
        echo "$cubin: not a cubin"
        exit 1
    fi
done
echo "$found cubins"
[ $found -gt 0 ]
