#!/bin/sh
# runtime_size.sh PROGRAM [MOST_BYTES]: how large a program that opens and runs any archive is when
# stripped, and where its bytes are. Fails where there are more than MOST_BYTES (3 MB).
set -eu
program=$1 most=${2:-3000000}
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$program"
size=$(wc -c <"$stripped")
# Names are the demangled ones; code of a CPU level is counted by level.
nm -S -C -t d --defined-only "$program" | awk '
  NF >= 4 && $3 !~ /[bB]/ && $2 ~ /^[0-9]+$/ {
    layer = "other"
    if (/N_AVX3/) layer = "dense, AVX-512"
    else if (/N_AVX2/) layer = "dense, AVX2"
    else if (/N_SSE4/) layer = "dense, SSE4"
    else if (/hologram::backends::dense/) layer = "dense, rest"
    else if (/hologram::kernels/) layer = "kernels"
    else if (/hologram::holotensor/) layer = "holotensor"
    else if (/hologram::runtime/) layer = "runtime"
    else if (/hologram::archive/) layer = "archive"
    else if (/hologram::isa/) layer = "isa"
    else if (/hologram/) layer = "support and backends"
    bytes[layer] += $2
  }
  END { for (layer in bytes) printf "%9d  %s\n", bytes[layer], layer }' | sort -rn
echo "$size bytes stripped, at most $most"
[ "$size" -le "$most" ]
