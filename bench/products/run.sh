#!/usr/bin/env bash
# The small products of the CPU kernels beside the same ones by Highway and by libxsmm, for each instruction set that
# this CPU has: bench/products/run.sh [COMMAND...], where a command such as chrt -f 10 starts each of them.
# Needs libhwy-dev and libxsmm-dev, which nothing else here does.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build/products
here=bench/products
mkdir -p "$out"

# NAME VECTOR_BYTES TILE_REGISTERS BODY_FLAGS HIGHWAY_FLAGS: the body's flags are those of
# src/kernels/cpu/CMakeLists.txt; Highway wants more features named before it uses a set.
started_by=("$@")
compare() {
  local name=$1 body=$4 highway=$5
  local flags="-std=c++20 -O3 -DNDEBUG -Isrc -I$here -DCOSFORMER_VECTOR_BYTES=$2 -DCOSFORMER_TILE_REGISTERS=$3"
  flags+=" -DCOSFORMER_CHUNK=32 -ffp-contract=fast -fno-math-errno -fno-trapping-math"
  # shellcheck disable=SC2086
  {
    g++ $flags $body -c "$here/ours.cc" -o "$out/ours.o"
    g++ $flags $highway -c "$here/highway.cc" -o "$out/highway.o"
    g++ $flags $body -c "$here/libxsmm.cc" -o "$out/libxsmm.o"
    g++ $flags -c "$here/main.cc" -o "$out/main.o"
  }
  g++ "$out"/{ours,highway,libxsmm,main}.o -o "$out/$name" -lxsmm -lxsmmnoblas -lhwy -lpthread -ldl
  echo "== $name"
  "${started_by[@]}" "$out/$name"
}

has() { grep -qw "$1" /proc/cpuinfo; }
wide="-mprefer-vector-width=512"
if has avx512vl; then
  compare avx512 64 24 "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma $wide" "-march=skylake-avx512 $wide"
fi
if has avx2; then compare avx2 32 12 "-mavx2 -mfma" "-march=haswell -maes"; fi
