#!/usr/bin/env bash
# Runs the ONNX suites newer than the distribution's, where they are: named by HOLOGRAM_ONNX_SUITES
# (separated by ':'), or in ../shared/conformance beside the project. A name is a folder of cases, a
# folder of such folders, or a folder of archives of them.
#   newer_suites.sh RUNNER SCRATCH [more arguments of the runner]
set -euo pipefail
shopt -s nullglob
runner=$1 scratch=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
IFS=: read -ra named <<<"${HOLOGRAM_ONNX_SUITES:-$here/../../../shared/conformance}"
suites=()
for folder in "${named[@]}"; do
  archives=("$folder"/onnx-*.tar.xz)
  if [ ${#archives[@]} -gt 0 ]; then
    mkdir -p "$scratch"
    for archive in "${archives[@]}"; do
      mark="$scratch/.$(basename "$archive").unpacked"
      [ "$mark" -nt "$archive" ] || { tar -xJf "$archive" -C "$scratch"; touch "$mark"; }
    done
    folder=$scratch
  fi
  cases=("$folder"/*/model.onnx)
  if [ ${#cases[@]} -gt 0 ]; then
    suites+=("$folder")
  else
    for inner in node simple pytorch-converted pytorch-operator; do  # as known_1_23.txt lists them
      cases=("$folder/$inner"/*/model.onnx)
      [ ${#cases[@]} -eq 0 ] || suites+=("$folder/$inner")
    done
  fi
done
if [ ${#suites[@]} -eq 0 ]; then
  [ -z "${HOLOGRAM_ONNX_SUITES:-}" ] || { echo "no cases in $HOLOGRAM_ONNX_SUITES" >&2; exit 2; }
  echo "no suite newer than the distribution's here; name one with HOLOGRAM_ONNX_SUITES"
  exit 77
fi
if [ $# -eq 0 ]; then set -- --quiet --known "$here/known_1_23.txt"; fi
exec "$runner" "${suites[@]}" "$@"
