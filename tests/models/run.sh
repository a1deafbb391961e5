#!/usr/bin/env bash
# `./dev test models`: real models against ONNX Runtime, and the examples that need trained models.
#   run.sh BIN FOLDER [arguments of hologram-models]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 folder=$2
shift 2
"$here/fetch.sh" "$folder"
architectures=()
[ ! -d "$folder/architectures" ] || architectures=(--architectures "$folder/architectures")
"$bin/hologram-models" "$here/models.json" --packages "$folder" "${architectures[@]}" "$@"
echo "quantised models"
"$here/quantize.sh" "$bin" "$folder"
echo "examples/speech"
"$here/../../examples/speech/run.sh" "$bin" "$folder"
echo "examples/ocr"
"$here/../../examples/ocr/run.sh" "$bin" "$folder"
