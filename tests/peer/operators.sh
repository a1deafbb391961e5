#!/usr/bin/env bash
# Compares operators outside the ONNX suites (com.microsoft, ai.onnx.ml) with ONNX Runtime.
#   operators.sh RUNNER SCRATCH
# The package onnxruntime-node is taken from HOLOGRAM_NPM (a node_modules folder), or installed in
# SCRATCH where HOLOGRAM_MODELS=1 says that installing is wanted.
set -euo pipefail
runner=$1 scratch=$2
here=$(cd "$(dirname "$0")" && pwd)
packages=${HOLOGRAM_NPM:-$scratch/node_modules}
if ! command -v node >/dev/null; then
  echo "no node here"
  exit 77
fi
if [ ! -d "$packages/onnxruntime-node" ]; then
  if [ "${HOLOGRAM_MODELS:-}" != 1 ]; then
    echo "no onnxruntime-node in $packages; set HOLOGRAM_MODELS=1 to install it"
    exit 77
  fi
  mkdir -p "$scratch"
  npm install --silent --prefix "$scratch" onnxruntime-node@1
fi
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
