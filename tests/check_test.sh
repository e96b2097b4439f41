#!/bin/sh
# check_test.sh: tools/check.sh on the tree itself, which the link to WORKSPACE leads to.
exec "$(dirname "$(readlink -f WORKSPACE)")/tools/check.sh"
