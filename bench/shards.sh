#!/usr/bin/env bash
# Runs a test program, perhaps under a tool, as many processes that have some of the tests each, and sums up what they
# printed: how many tests passed, the worst of each error, what the tool found, and everything of those that failed.
#   bench/shards.sh [compute-sanitizer --tool racecheck] build-cuda/bin/attention_cuda_test
# SHARDS: how many processes; as many as there are cores where it is not set.
set -uo pipefail
[ $# -ge 1 ] || { echo "usage: bench/shards.sh COMMAND..." >&2; exit 2; }
shards=${SHARDS:-$(nproc)}
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
processes=()
for ((i = 0; i < shards; ++i)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "$@" --gtest_brief=1 > "$parts/$i" 2>&1 &
  processes+=($!)
done
failed=0
for ((i = 0; i < shards; ++i)); do
  if ! wait "${processes[$i]}"; then
    failed=$((failed + 1))
    echo "process $i of $shards failed:"
    cat "$parts/$i"
  fi
done
# "[  PASSED  ] 3 tests." and "bfloat16 dq   error / bound 0.483", a line of each for every process.
awk '/^\[  PASSED  \]/ { passed += $4 }
     /error \/ bound/ { key = $1 " " $2; if (!(key in worst) || $NF > worst[key]) worst[key] = $NF }
     END { print passed + 0, "tests passed"
           for (key in worst) { split(key, name, " ")
                                printf "%-8s %-15s error / bound %s\n", name[1], name[2], worst[key] } }' \
  "$parts"/* | { read -r passed; echo "$passed"; sort; }
grep -h 'SUMMARY' "$parts"/* | sort | uniq -c
[ $failed -eq 0 ]
