#!/usr/bin/env bash
# Compares operators outside the ONNX suites (com.microsoft, ai.onnx.ml) with ONNX Runtime.
#   operators.sh RUNNER SCRATCH [install]
# The package onnxruntime-node is looked for in SCRATCH; `install` gets it there.
set -euo pipefail
runner=$1 scratch=$2
here=$(cd "$(dirname "$0")" && pwd)
if [ "${3:-}" = install ] && [ ! -d "$scratch/node_modules/onnxruntime-node" ]; then
  mkdir -p "$scratch"
  npm install --silent --ignore-scripts --no-audit --prefix "$scratch" onnxruntime-node@1.30.0
fi
packages=$(cd "$scratch/node_modules" 2>/dev/null && pwd) || {
  echo "no ONNX Runtime in $scratch: ./dev test models installs it"
  exit 77
}
cases=$scratch/operators
rm -rf "$cases"
python=/usr/bin/python3  # Debian's, which has python3-onnx
"$python" "$here/suite.py" make "$cases"
# Again after a crash of ONNX Runtime: what crashed is marked and passed over.
for _ in 1 2 3 4; do
  if NODE_PATH=$packages node "$here/run_onnxruntime.js" "$cases"; then break; fi
done
"$python" "$here/suite.py" finish "$cases"
exec "$runner" "$cases" --list-failures
