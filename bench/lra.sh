#!/usr/bin/env bash
# One training of the Long Range Arena in its fast setting, its folder kept small enough to be committed:
#   bash bench/lra.sh PROGRAM TASK DATA NAME SEED [cosformer train's further options]
# leaves bench/results/lra/TASK-NAME-SEED/ with command.txt, config.toml, output.txt, metrics.jsonl and result.json.
set -uo pipefail
program=$1 task=$2 data=$3 name=$4 seed=$5
shift 5
here=$(cd "$(dirname "$0")/.." && pwd)
run=runs/lra-$task-$name-$seed
kept=$here/bench/results/lra/$task-$name-$seed
rm -rf "$run"
options=(--data "$data" --out "$run" --set "train.seed=$seed" "$@")
mkdir -p "$kept" runs
bash "$here/bench/header.sh" cosformer train --config "configs/lra/$task-fast.toml" "${options[@]}" \
  > "$kept/command.txt"
timeout "${LRA_SECONDS:-590}" "$program" train --config "$here/configs/lra/$task-fast.toml" "${options[@]}" \
  > "$run.txt" 2>&1
code=$?
mv "$run.txt" "$kept/output.txt"
cp "$run"/{config.toml,metrics.jsonl} "$kept/" 2> /dev/null
cp "$run"/result.json "$kept/" 2> /dev/null
echo "$task $name $seed: exit $code, $(grep -o '"test_accuracy": [0-9.]*' "$kept/result.json" 2> /dev/null) $(grep -h \
  'trained .* tokens/s' "$kept/output.txt")"
