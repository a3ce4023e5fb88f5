#!/usr/bin/env bash
# Language models through `cosformer compare`: killed midway and gone on with, bits per byte and perplexity beside what
# counting reaches, in the table, the JSON and the report.
set -uo pipefail
program=$1
. "$(dirname "$0")/expect.sh"

for i in $(seq 1 400); do
  printf 'the %s cats see one dog and two birds by the river\nno dog sees %s cats\n' "$((i % 7))" "$((i % 5))"
done > text.txt

cat > words.toml << 'TOML'
[compare]
attention = ["cosformer", "softmax", "nystromformer"]
threads = 1
lengths = []

[data]
task = "lm"
path = "text.txt"
tokenizer = "words"
cache = "cache"
window = 16

[model]
width = 16
heads = 2
layers = 1
feed_forward = 16

[train]
device = "cpu"
steps = 3000
batch_size = 4
lr = 0.01
log_every = 10
eval_every = 1000
checkpoint_every = 20
TOML

expect 0 'cosformer +0 +3,000 +16 ' "$program" compare --config words.toml --dry-run
[ -e compare ] && fail "--dry-run left a folder"
expect 2 "none of the 3 cells can be; lm with cosformer: .*nowhere.txt" "$program" compare --config words.toml \
  --data nowhere.txt

# Killed in the second cell, at a moment after its first checkpoint.
cells=compare/words/cells
kill_once_there "$cells/lm-softmax-0/checkpoints/step-*" "$program" compare --config words.toml
[ -s $cells/lm-cosformer-0/result.json ] || fail "the first cell had not finished"
cp -p $cells/lm-cosformer-0/result.json first.json

expect 0 'report: compare/words/report.html' "$program" compare --config words.toml
grep -q '1 of 3 cells have finished before' output.txt || fail "the finished cell was not kept"
cmp -s first.json $cells/lm-cosformer-0/result.json || fail "the finished cell was trained again"
grep -q 'cannot be: .*nystromformer' output.txt || fail "a mechanism that is not causal is not explained"
grep -qE '^lm +bits per byte +perplexity +loss' output.txt || fail "the table has no bits per byte"
for row in 'floor: single tokens' 'floor: pairs of tokens'; do
  grep -qE "^$row +[0-9.]+ +[0-9.]+ +[0-9.]+" output.txt || fail "no row of $row"
done
for name in cosformer softmax; do
  grep -qE "^$name +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ [kM]B +[0-9,]+" output.txt ||
    fail "no row of $name"
done
for plot in lm-quality-speed lm-valid_bits_per_byte lm-loss; do
  [ -s compare/words/plots/$plot.png ] || fail "no picture $plot"
done
grep -q '<th>bits per byte</th>' compare/words/report.html || fail "the report has no bits per byte"
cmp -s $cells/lm-cosformer-0/tokenizer $cells/lm-softmax-0/tokenizer || fail "two cells have two tokenizers"
"$program" eval $cells/lm-softmax-0 --json > eval.json 2> errors.txt || fail "a cell cannot be evaluated"
python3 - compare/words/results.json eval.json << 'PYTHON' > output.txt 2>&1 || fail "results.json: $(cat output.txt)"
import json, math, sys
results, evaluation = (json.load(open(name)) for name in sys.argv[1:])
rows = {row["name"]: row for row in results["rows"]}
assert "accuracy" not in rows["softmax"], rows["softmax"]
run, floors = evaluation["runs"][0], evaluation["floors"]
for name in ("bits_per_byte", "perplexity"):
    assert math.isclose(rows["softmax"][name], run[name], rel_tol=1e-4), (name, rows["softmax"], run)
    for floor in results["floors"]:
        assert math.isclose(floor[name], floors[floor["rule"]][name], rel_tol=1e-9), (floor, floors)
assert len(results["floors"]) == 2
assert rows["softmax"]["bits_per_byte"] < results["floors"][0]["bits_per_byte"], "worse than counting single words"
sizes = [rows[name]["parameters"] for name in ("cosformer", "softmax")]
assert max(sizes) <= 1.01 * min(sizes), sizes
PYTHON

[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
