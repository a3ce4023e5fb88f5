#!/usr/bin/env bash
# One training of a language model, or of a classifier that begins as one; what is kept of it is small enough to commit:
#   bash bench/lm.sh PROGRAM NAME cosformer train's options...
# leaves bench/results/lm/NAME/ with command.txt, config.toml, output.txt, metrics.jsonl, result.json and, of a language
# model, eval.json.
set -uo pipefail
program=$1 name=$2
shift 2
here=$(cd "$(dirname "$0")/.." && pwd)
run=runs/$name
kept=$here/bench/results/lm/$name
rm -rf "$run"
mkdir -p "$kept" runs
bash "$here/bench/header.sh" cosformer train --out "$run" "$@" > "$kept/command.txt"
timeout "${LM_SECONDS:-590}" "$program" train --out "$run" "$@" > "runs/$name.txt" 2>&1
code=$?
mv "runs/$name.txt" "$kept/output.txt"
for file in config.toml metrics.jsonl result.json; do cp "$run/$file" "$kept/" 2> /dev/null; done
if [ -f "$run/tokenizer" ] && [ "$code" = 0 ]; then
  "$program" eval "$run" --json > "$kept/eval.json" 2>> "$kept/output.txt"
fi
echo "$name: exit $code"
