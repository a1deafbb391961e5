#!/usr/bin/env bash
# wasm_kernels.sh SOURCE BUILD: compiles the numeric kernels and their tests for wasm SIMD in the
# folder BUILD and runs them in node. What has not changed since is neither compiled nor run again.
set -euo pipefail
source=$1 build=$2
skip() {
  echo "not run: $1; ./dev test installs what packages.txt lists"
  exit 77
}
for tool in clang++-19 llvm-objdump-19 ninja node; do
  command -v $tool >/dev/null || skip "no $tool"
done
for file in /usr/include/hwy/highway.h /usr/include/fmt/format.h /usr/src/googletest/googletest/src/gtest-all.cc; do
  [ -f $file ] || skip "no $file"
done
mkdir -p "$build"
echo 'int main() {}' | clang++-19 --target=wasm32-wasi -include algorithm -x c++ - -o "$build/empty.wasm" ||
  skip "clang++-19 cannot make a program for wasm32-wasi (see above)"

[ -f "$build/build.ninja" ] || cmake -S "$source/tests/wasm/kernels" -B "$build" -G Ninja \
  --toolchain "$source/cmake/wasm32-wasi.cmake" -DCMAKE_BUILD_TYPE=Release
ninja -C "$build" -j 2
program=$build/dense_test.wasm runner=$source/tests/wasm/kernels/run_wasi.mjs passed=$build/passed.txt
if [ ! "$passed" -nt "$program" ] || [ ! "$passed" -nt "$runner" ]; then
  rm -f "$passed"
  # By the optimising compiler from the start: the other one's loops stay slow until they end.
  node --no-liftoff "$runner" "$program" --gtest_brief=1 >"$build/ran.txt" || { cat "$build/ran.txt"; exit 1; }
  # Scalar code would pass as well.
  products=$(llvm-objdump-19 -d "$program" | grep -c 'f32x4\.mul' || true)
  echo "$products multiplications of four f32" >>"$build/ran.txt"
  [ "$products" -ge 1000 ] || { cat "$build/ran.txt"; exit 1; }
  mv "$build/ran.txt" "$passed"
fi
cat "$passed"
