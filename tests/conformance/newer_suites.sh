#!/usr/bin/env bash
# Runs the ONNX suites newer than the distribution's, where they are: folders of cases named by
# HOLOGRAM_ONNX_SUITES (separated by ':'), or archives in ../shared/conformance beside the project.
#   newer_suites.sh RUNNER SCRATCH [more arguments of the runner]
set -euo pipefail
runner=$1 scratch=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
archives=("$here"/../../../shared/conformance/onnx-1.23-*.tar.xz)
if [ -n "${HOLOGRAM_ONNX_SUITES:-}" ]; then
  IFS=: read -ra suites <<<"$HOLOGRAM_ONNX_SUITES"
elif [ -e "${archives[0]}" ]; then
  mkdir -p "$scratch"
  for archive in "${archives[@]}"; do
    mark="$scratch/.$(basename "$archive").unpacked"
    [ "$mark" -nt "$archive" ] || { tar -xJf "$archive" -C "$scratch"; touch "$mark"; }
  done
  suites=("$scratch/node" "$scratch/simple" "$scratch/pytorch-converted" "$scratch/pytorch-operator")
else
  echo "no suite newer than the distribution's here; name one with HOLOGRAM_ONNX_SUITES"
  exit 77
fi
if [ $# -eq 0 ]; then set -- --quiet --known "$here/known_1_23.txt"; fi
exec "$runner" "${suites[@]}" "$@"
