#!/usr/bin/env bash
# The demo from a clone of its own, as a newcomer runs it: it must end with the report and the trace.
#   run_demo.sh SOURCE_DIR
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git clone -q "$1" "$scratch/vramtrack"
"$scratch/vramtrack/scripts/demo" --layers 2 | tee "$scratch/out"
grep -q 'torch.cuda.max_memory_allocated' "$scratch/out"
grep -q '^  in use ' "$scratch/out"
trace=$(sed -n 's/^The trace is //p' "$scratch/out")
[[ -s $trace ]]
