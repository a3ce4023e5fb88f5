#!/usr/bin/env bash
# The tests of the torch-free folders under the sanitizers: the same tests on a quarter of the random cases.
set -euo pipefail
cd "$(dirname "$0")/.."

run() {
  local preset=$1 target=$2 filter=$3
  cmake --preset "$preset" > "build-$preset.log" 2>&1 || { cat "build-$preset.log"; exit 1; }
  rm -f "build-$preset.log"
  cmake --build --preset "$preset" --target "$target" -j "$(nproc)"
  ctest --test-dir "build-$preset" --output-on-failure --no-tests=error -j "$(nproc)" -R "$filter"
}

export COSFORMER_TEST_CASES=${COSFORMER_TEST_CASES:-25}
export UBSAN_OPTIONS=print_stacktrace=1
run asan all '.*'
# Races do not depend on shapes: fewer cases do.
COSFORMER_TEST_CASES=$((COSFORMER_TEST_CASES / 3 + 1)) run tsan kernels_cpu_test 'RandomCases|CpuProperties'
