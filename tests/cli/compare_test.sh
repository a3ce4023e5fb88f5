#!/usr/bin/env bash
# A tiny comparison through the program: killed midway and gone on with, with a cell that fails and one that cannot be;
# its table and report; then the attention maps of its models.
set -uo pipefail
program=$1
. "$(dirname "$0")/expect.sh"

# Which of two letters is in the text?
{
  printf 'text\tlabel\n'
  for i in $(seq 1 80); do
    printf 'xyzxyz%s a xy\tgood\nzyx%s b zyxz\tbad\n' "$i" "$i"
  done
} > texts.tsv

cat > tiny.toml << 'TOML'
[compare]
attention = ["cosformer", "softmax", "linear"]
seeds = 1
threads = 1
lengths = [64, 128]
speed_seconds = 0.02

[data]
task = "text_files"
path = "texts.tsv"

[model]
width = 16
heads = 2
layers = 1
feed_forward = 16

[train]
device = "cpu"
steps = 1500
batch_size = 8
lr = 0.005
log_every = 10
eval_every = 500
checkpoint_every = 20
TOML

expect 0 'cosformer +0 +1,500 +16 ' "$program" compare --config tiny.toml --dry-run
[ -e compare ] && fail "--dry-run left a folder"
expect 2 'none of the 3 cells can be' "$program" compare --config tiny.toml --data nowhere.tsv
[ -e compare ] && fail "a comparison that cannot be left a folder"
expect 2 'steps' "$program" compare --config tiny.toml --steps -5

# Killed in the second cell, at a moment after its first checkpoint.
cells=compare/tiny/cells
kill_once_there "$cells/text_files-softmax-0/checkpoints/step-*" "$program" compare --config tiny.toml
[ -s $cells/text_files-cosformer-0/result.json ] || fail "the first cell had not finished"
[ -e $cells/text_files-softmax-0/result.json ] && fail "the second cell had finished before the kill"
cp -p $cells/text_files-cosformer-0/result.json first.json

expect 0 'report: compare/tiny/report.html' "$program" compare --config tiny.toml
grep -q '1 of 3 cells have finished before' output.txt || fail "the finished cell was not kept"
cmp -s first.json $cells/text_files-cosformer-0/result.json || fail "the finished cell was trained again"
grep -q 'going on from step' $cells/text_files-softmax-0/log.txt || fail "the killed cell did not resume"
grep -qE '^floor: most frequent class +[0-9.]+%' output.txt || fail "no floor in the table"
for name in cosformer softmax linear; do
  grep -qE "^$name +[0-9.]+% +[0-9.e-]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ [kM]B +[0-9,]+" output.txt || fail "no row of $name"
  grep -qE "^$name +[0-9.]+ [kM]B +[0-9.]+ [kM]B" output.txt || fail "no memory by length of $name"
done
report=compare/tiny/report.html
[ "$(grep -c '<img alt=' $report)" -eq 6 ] || fail "$(grep -c '<img alt=' $report) pictures in the report, expected 6"
tail -1 $report | grep -q '</html>' || fail "the report is not whole"
for plot in text_files-quality-speed time-training time-inference memory text_files-valid_accuracy text_files-loss; do
  [ -s compare/tiny/plots/$plot.png ] || fail "no picture $plot"
done
python3 - compare/tiny/results.json << 'PYTHON' > output.txt 2>&1 || fail "results.json"
import json, sys
results = json.load(open(sys.argv[1]))
assert [c["state"] for c in results["cells"]] == ["finished"] * 3
assert all(r["accuracy"] > 0.6 and r["seeds"] == 1 for r in results["rows"]), results["rows"]
sizes = [r["parameters"] for r in results["rows"]]
assert max(sizes) <= 1.01 * min(sizes), sizes
assert len(results["speed"]) == 6 and all(p["inference_steps_per_second"] > 0 for p in results["speed"])
PYTHON

expect 2 'begun with other settings \(train.lr = 0.005 there, 0.01 now\)' \
  "$program" compare --config tiny.toml --set train.lr=0.01
expect 2 'measured with other settings' "$program" compare --config tiny.toml --speed-only --out compare/tiny \
  --set model.width=32

# Ctrl-C ends with 130 and can be gone on with.
"$program" compare --config tiny.toml --out stopped --lengths none > output.txt 2>&1 &
process=$!
for _ in $(seq 1 6000); do
  [ -s stopped/cells/text_files-cosformer-0/metrics.jsonl ] && break
  sleep 0.05
done
kill -INT $process
wait $process
[ $? -eq 130 ] || fail "Ctrl-C did not end with 130"
grep -q 'the same command goes on' output.txt || fail "Ctrl-C does not tell how to go on"
ls stopped/cells/text_files-cosformer-0/checkpoints/step-* > output.txt 2>&1 || fail "Ctrl-C left no checkpoint"

# A cell that diverges fails, one whose settings contradict each other cannot be, the others finish; variants get bars.
cat > variants.toml << 'TOML'
[compare]
lengths = []

[[cell]]
name = "plain"
attention = "cosformer"

[[cell]]
name = "diverges"
attention = "cosformer"
set = ["train.lr=1e38", "train.clip=0"]

[[cell]]
name = "contradicts"
attention = "cosformer"
set = ["attention.gate=true"]

[[cell]]
name = "cosformer, identity"
attention = "cosformer"
set = ["attention.feature_map=identity"]
TOML
sed -n '/^\[data\]/,$p' tiny.toml | sed 's/steps = 1500/steps = 40/' >> variants.toml
expect 1 'diverges seed 0: FAILED: .*not finite|diverges seed 0: FAILED: the loss is' \
  "$program" compare --config variants.toml
grep -q 'contradicts seed 0: cannot be: .*published method' output.txt || fail "the impossible cell is not explained"
grep -qE '^plain +[0-9.]+%' output.txt || fail "the cells beside the failed one did not finish"
grep -qE '^cosformer, identity +[0-9.]+%' output.txt || fail "the cells after the failed one did not finish"
[ -s compare/variants/plots/text_files-variants-cosformer.png ] || fail "no bars of the variants"

expect 2 'nothing to compare' "$program" compare --task text_files
expect 2 "expected a list of cosformer.*got 'softmx'" "$program" compare --task listops --attention softmx
expect 2 "no setting 'train.lrr'" "$program" compare --config tiny.toml --set train.lrr=1 --out other
printf '[[cell]]\nname = "x"\nattention = "cosformer"\nsettings = ["a=b"]\n' > bad.toml
expect 2 'bad.toml:4: a \[\[cell\]\] has name, attention and set' "$program" compare --config bad.toml
[ -e other ] && fail "a comparison that could not begin left its folder"

# What a head looks at, of two trained models side by side, and of an untrained one.
printf 'xyzxyz90 a xy\n' > line.txt
expect 0 'softmax +2 +0%' "$program" attention-map $cells/text_files-cosformer-0 $cells/text_files-softmax-0 \
  --input line.txt --head 2 --out map
for file in map.png map.svg weights-1.tsv weights-2.tsv summary.json; do
  [ -s map/$file ] || fail "map/$file is missing"
done
python3 -c 'rows = [[float(x) for x in line.split("\t")] for line in open("map/weights-2.tsv")]
assert len(rows) == 13 and all(len(r) == 13 and abs(sum(r) - 1) < 1e-4 for r in rows)' > output.txt 2>&1 \
  || fail "softmax' weights are not 13 rows that sum to one"
grep -q '>␣<' map/map.svg || fail "the map's axes do not show the text's characters"
expect 0 '"share_within_16"' "$program" attention-map --task text_files --data texts.tsv --attention cosformer \
  --out fresh --json
expect 2 'has layers 1 to 1' "$program" attention-map $cells/text_files-softmax-0 --input line.txt --layer 2
expect 2 'say what to look into' "$program" attention-map

[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
