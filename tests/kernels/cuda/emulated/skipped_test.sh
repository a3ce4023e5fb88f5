#!/usr/bin/env bash
# A machine without Boost, or one on which the race detector would not start, is told so by ctest: a test is skipped.
#     skipped_test.sh SOURCE
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo 32 > "$work/mmap_rnd_bits"

# skipped NAME REASON [OPTION...]: configured with these options, ctest skips this test and says why.
skipped() {
  local name=$1 reason=$2
  shift 2
  cmake -S "$source" -B "$work/$name" -DCOSFORMER_TORCH=OFF -DCOSFORMER_DATA=OFF -DCOSFORMER_CUDA=OFF \
    "$@" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  ctest --test-dir "$work/$name" -R "^$name$" -V > "$work/log" 2>&1 || true
  for words in "$name \.*\**Skipped" "$reason"; do
    grep -q -- "$words" "$work/log" || { echo "ctest does not say '$words':"; cat "$work/log"; exit 1; }
  done
}

source=$1
skipped emulated_cuda_test.skipped_without_Boost.Context "install libboost-context-dev" -DCOSFORMER_BOOST_INCLUDE=OFF
skipped emulated_cuda_test.races_skipped_with_vm.mmap_rnd_bits_above_28 "vm.mmap_rnd_bits is 32" \
  -DCOSFORMER_RACE_DETECTOR_RUNS=ON -DCOSFORMER_MMAP_RND_BITS="$work/mmap_rnd_bits"
skipped emulated_cuda_test.races_skipped_without_ThreadSanitizer "ThreadSanitizer does not run here" \
  -DCOSFORMER_RACE_DETECTOR_RUNS=OFF
echo "ctest says what it skips"
