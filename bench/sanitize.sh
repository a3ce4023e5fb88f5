#!/usr/bin/env bash
# The kernels' tests under compute-sanitizer, on few and short cases: a test to a process, all at once, in groups whose
# cases take about as long. One that reaches the limit fails, and the others count.
#   bench/sanitize.sh memcheck|initcheck|racecheck build-cuda/bin/attention_cuda_test
# COSFORMER_LIMIT: seconds that a test may take, 240 where it is not set.
set -uo pipefail
[ $# -eq 2 ] || { echo "usage: bench/sanitize.sh memcheck|initcheck|racecheck PROGRAM" >&2; exit 2; }
cd "$(dirname "$0")/.."
tool=$1 program=$2 limit=${COSFORMER_LIMIT:-240}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
groups=() processes=()

# group TESTS FILTER LIMIT=NUMBER...   how many they are, which, and the numbers of case_limits.h
group() {
  local shards=$1 filter=$2
  shift 2
  groups+=("$filter $*")
  env "${@/#/COSFORMER_CUDA_}" GTEST_FILTER="$filter" SHARDS="$shards" bash bench/shards.sh \
    timeout "$limit" compute-sanitizer --tool "$tool" --error-exitcode 1 "$program" > "$logs/${#groups[@]}" 2>&1 &
  processes+=($!)
}

# What follows every access to shared memory takes longest, and cannot have all head dims. float32 takes several times
# as long as the others; bfloat16 alone has kernels of its own for segments.
few=8 wide=12 length=300 without='*Segments*'
[ "$tool" != racecheck ] || few=3 wide=6 length=130 without='*Segments*:*HeadDims*'
group 1 '*Segments/bfloat16' AGAIN=1 LONGEST=700
group 12 "*/bfloat16-$without" CASES=$few WIDE=$wide LONG=2 LONGEST=$length
group 12 "*/float16-$without" CASES=$few WIDE=2 LONG=1 LONGEST=70
group 12 "*/float32-$without" CASES=2 WIDE=1 LONG=1 LONGEST=70
group 8 '-*/*:*Many*' NUMBERS=50000

failed=0
for i in "${!groups[@]}"; do
  wait "${processes[$i]}" || failed=$((failed + 1))
  echo "${groups[$i]}"
  cat "$logs/$((i + 1))"
  echo
done
[ $failed -eq 0 ]
