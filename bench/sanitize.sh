#!/usr/bin/env bash
# The kernels' tests under compute-sanitizer, on few and short cases: a test to a process, all at once, in groups whose
# cases take about as long. One that reaches the limit fails, and the others count.
#   bench/sanitize.sh memcheck|initcheck|racecheck build-cuda/bin/attention_cuda_test
# COSFORMER_LIMIT: seconds that a test may take, 240 where it is not set.
set -uo pipefail
[ $# -eq 2 ] || { echo "usage: bench/sanitize.sh memcheck|initcheck|racecheck PROGRAM" >&2; exit 2; }
cd "$(dirname "$0")/.."
tool=$1 program=$2
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
groups=() processes=()

# group NAME FILTER LIMIT=NUMBER...   the numbers of case_limits.h
group() {
  local name=$1 filter=$2
  shift 2
  groups+=("$name: $filter $*")
  env "${@/#/COSFORMER_CUDA_}" GTEST_FILTER="$filter" SHARDS=16 bash bench/shards.sh \
    timeout "${COSFORMER_LIMIT:-240}" compute-sanitizer --tool "$tool" --error-exitcode 1 "$program" > "$logs/${#groups[@]}" 2>&1 &
  processes+=($!)
}

# All head dims take long, and what follows every access to shared memory longest. float32 takes several times as long as
# the others; bfloat16 alone has kernels of its own for segments.
if [ "$tool" = racecheck ]; then few=3 wide=6 length=130; else few=8 wide=12 length=300; fi
group segments '*Segments/bfloat16' AGAIN=1 LONGEST=700
group bfloat16 '*/bfloat16-*Segments*:*HeadDims*' CASES=$few WIDE=$wide LONG=2 LONGEST=$length
group float16 '*/float16-*Segments*:*HeadDims*' CASES=$few WIDE=2 LONG=1 LONGEST=70
group float32 '*/float32-*Segments*:*HeadDims*' CASES=2 WIDE=1 LONG=1 LONGEST=70
group rows '-*/*:*Many*' NUMBERS=50000

failed=0
for i in "${!groups[@]}"; do
  wait "${processes[$i]}" || failed=$((failed + 1))
  echo "${groups[$i]}"
  cat "$logs/$((i + 1))"
  echo
done
[ $failed -eq 0 ]
