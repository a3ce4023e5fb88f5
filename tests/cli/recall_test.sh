#!/usr/bin/env bash
# The task recall through train, resume, eval, info and compare; what does not fit it is refused with its name.
set -uo pipefail
program=$1
. "$(dirname "$0")/expect.sh"

cat > small.toml << 'TOML'
[data]
task = "recall"
generate_train = 400
generate_valid = 40
generate_test = 60

[recall]
pairs = 5
length = 40
keys = 12
values = 8
fillers = 4

[model]
width = 16
heads = 2
layers = 1
feed_forward = 16
dropout = 0.0

[train]
device = "cpu"
steps = 60
batch_size = 8
lr = 0.01
log_every = 10
eval_every = 20
TOML

expect 0 '^floor of accuracy: a value of the text ' \
  "$program" train --config small.toml --attention cosformer_plus --out run
grep -q 'recall: 1 to 5 pairs of 12 keys and 8 values' output.txt || fail "train does not describe the texts"
grep -q 'next: cosformer eval run' output.txt || fail "train does not say what comes next"
expect 0 'this run had ended before' "$program" train --resume run
expect 0 '^steps +60' "$program" info run
expect 0 '^test part: 60 texts, [0-9]+ queries; 1 to 5 pairs' "$program" eval run
for row in 'floor: any value +12.50%' 'cosformer_plus +[0-9.]+ ± [0-9.]+%' '3-4 +[0-9]+ ' \
  '5 +[0-9]+ ' '17-32 +[0-9]+ ' \
  'plot: run/recall.svg and .png'; do
  grep -qE "^ *$row" output.txt || fail "eval has no line '$row'"
done
[ -s run/recall.svg ] || fail "eval left no picture"
expect 0 '^valid part: 40 texts' "$program" eval run --part valid --batch-size 7
"$program" train --config small.toml --attention softmax --out other > output.txt 2>&1 || fail "softmax is not trained"
"$program" eval run other --json > eval.json 2> output.txt || fail "two runs are not compared"
"$program" bundle run --out run.safetensors > output.txt 2>&1 || fail "no bundle of a recall run"
"$program" eval run.safetensors --json > bundle.json 2> output.txt || fail "a bundle is not evaluated"

expect 2 "'run' is a recall model.*cosformer eval run" "$program" predict run --input input.txt
expect 2 "'run' is a recall model" "$program" generate run --prompt x
expect 2 "'run' is a recall model" "$program" attention-map run
expect 2 '--data is for tasks that read data' "$program" eval run --data small.toml
expect 2 '--carry is for language models' "$program" eval run --carry 8
expect 2 "does not read data.path" "$program" train --config small.toml --data small.toml --out none
expect 2 "does not read recall.pairs \(for recall\)" "$program" train --task lm --data small.toml --set recall.pairs=3
expect 2 "recall.keys \(12\) must not be below recall.pairs \(13\)" "$program" train --config small.toml \
  --set recall.pairs=13 --set recall.length=100 --out none
expect 2 "'cut' cannot read the texts of 'run'" bash -c "'$program' train --config small.toml --set recall.length=24 \
  --set recall.pairs=4 --steps 1 --out cut && '$program' eval run cut"
[ -e none ] && fail "a refused training left a folder"

expect 0 '^recall by pairs in the text +1 +2 +3-4 +5' "$program" compare --config small.toml --steps 20 --seeds 2 \
  --attention cosformer,softmax,nystromformer --lengths none --out both
grep -qE '^recall by tokens from pair to query +2 +3-4' output.txt || fail "compare has no table by distance"
grep -qE '^softmax +[0-9.]+ ± [0-9.]+% ' output.txt || fail "compare has no row of softmax"
grep -q 'cannot be: .*nystromformer' output.txt || fail "a mechanism that is not causal is not explained"
[ -s both/plots/recall-recall.svg ] || fail "compare has no picture of the curves"
grep -q 'recall by pairs in the text' both/report.html || fail "the report has no table by pairs"
python3 - run/result.json eval.json bundle.json both/results.json << 'PYTHON' > output.txt 2>&1 ||
import json, math, sys
result, evaluation, bundle, compared = (json.load(open(name)) for name in sys.argv[1:])
run, other = evaluation["runs"]
assert math.isclose(run["accuracy"], result["test_accuracy"]), (run, result)
assert bundle["runs"][0]["by_pairs"] == run["by_pairs"]
assert [p["queries"] for p in run["by_distance"]] == [p["queries"] for p in other["by_distance"]]
for kind in ("by_pairs", "by_distance"):
    assert sum(p["queries"] for p in run[kind]) == run["queries"], run
    assert math.isclose(sum(p["queries"] * p["accuracy"] for p in run[kind]), run["accuracy"] * run["queries"]), run
for point in run["by_pairs"]:
    assert math.isclose(result[f'test_accuracy_pairs_{point["first"]}_{point["last"]}'], point["accuracy"]), point
assert set(evaluation["floors"]) == {"any value", "the last value", "a value of the text"}
cells = [cell for cell in compared["cells"] if cell["state"] == "finished"]
assert len(cells) == 4 and all(len(cell["accuracy_by_pairs"]) == 4 for cell in cells), cells
PYTHON
  fail "the numbers disagree"
exit $((failures > 0))
