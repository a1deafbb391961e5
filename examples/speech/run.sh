#!/usr/bin/env bash
# Says a sentence with espeak-ng and reads it back with Moonshine tiny.
#   run.sh BIN FOLDER [SENTENCE]    FOLDER is what tests/models/fetch.sh filled
# Without a sentence it is a test: the usual one must come back.
set -euo pipefail
bin=$1 folder=$2
expected="Compilers decide, and the runtime obeys."
sentence=${3:-$expected}
models="$folder/node_modules/@moonshine-ai/moonshine-js/dist/model/tiny/quantized"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for part in encoder_model decoder_model_merged; do
  archive="$folder/moonshine_$part.holo"
  [ "$archive" -nt "$models/$part.onnx" ] && [ "$archive" -nt "$bin/hologram" ] ||
    "$bin/hologram" compile "$models/$part.onnx" -o "$archive" >/dev/null
done
espeak-ng -v en-us -s 150 -w "$scratch/spoken.wav" "$sentence"
sox "$scratch/spoken.wav" -r 16000 -c 1 -b 16 "$scratch/speech.wav" pad 0.1 0.3
text=$("$bin/example_speech" "$folder/moonshine_encoder_model.holo" \
  "$folder/moonshine_decoder_model_merged.holo" \
  "$folder/node_modules/llama-tokenizer-js/llama-tokenizer.js" "$scratch/speech.wav")
echo "said:  $sentence"
echo "heard: $text"
if [ $# -lt 3 ] && [ "$text" != "$expected" ]; then
  echo "error: the sentence did not come back" >&2
  exit 1
fi
