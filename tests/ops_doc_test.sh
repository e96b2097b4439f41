#!/bin/sh
# ops_doc_test.sh: docs/ops.md is what the registry says.
diff docs/ops.md tests/ops.md && exit 0
echo "docs/ops.md is out of date; its head says how to make it anew"
exit 1
