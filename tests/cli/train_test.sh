#!/usr/bin/env bash
# Train, go on, evaluate, predict and inspect through the program, and what it says to wrong requests.
set -uo pipefail
program=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/expect.sh"

# Which of two letters is in the text?
{
  printf 'review\tmood\n'
  for i in $(seq 1 80); do
    printf 'xyzxyz%s a xy\tgood\nzyx%s b zyxz\tbad\n' "$i" "$i"
  done
} > texts.tsv
train=("$program" train --task text_files --data texts.tsv --set data.text_column=review --set data.label_column=mood
  --set model.width=16 --set model.heads=2 --set model.layers=1 --set model.feed_forward=16 --device cpu
  --set train.lr=0.02 --set train.batch_size=8 --set train.log_every=2 --set train.eval_every=20)

expect 0 'data.task .*fashion_mnist' "$program" train --settings
expect 0 'data.separator' "$program" train --settings --task text_files
grep -q 'data.window' output.txt && fail "--settings --task text_files lists what it does not read"
expect 0 'cosformer_plus +[0-9.]+ ± [0-9.]+%' "${train[@]}" --steps 60 --out run
grep -q "classes, .*: 'bad' [0-9]* + [0-9]* + [0-9]*, 'good'" output.txt \
  || fail "nothing tells how many examples each class has"
for file in config.toml best.safetensors metrics.jsonl log.txt result.json curves.svg curves.png data.json; do
  [ -s "run/$file" ] || fail "run/$file is missing"
done
ls run/tensorboard/events.out.tfevents.* > output.txt 2>&1 || fail "no event file"
cp run/result.json before.json
expect 0 'going on from step 60' "${train[@]}" --steps 60 --out run
grep -q 'had ended before' output.txt || fail "nothing says that the run had ended"
cmp -s run/result.json before.json || fail "a run that had ended was measured again"
expect 2 'other settings \(train.lr' "${train[@]}" --steps 60 --out run --set train.lr=0.01
expect 0 'floor: most frequent class' "$program" eval run
cp -r run without
rm -r without/checkpoints
expect 2 'its checkpoints are gone' "$program" train --resume without
: > without/config.toml
expect 2 "without/config.toml' is not as it was written" "$program" train --resume without
expect 2 'is not a comparison' "$program" compare --task text_files --data texts.tsv --attention cosformer --out run
cp texts.tsv kept.tsv
sed -i 's/xyzxyz/yyyyyy/' texts.tsv
expect 2 "'run' was trained on other data" "$program" train --resume run
mv kept.tsv texts.tsv
cp -r run again
expect 0 'cosformer_plus.*, again +[0-9.]+ ± [0-9.]+%' "$program" eval run again
expect 0 'floors' "$program" eval run run --json
python3 -c 'import json; r = json.load(open("output.txt"))["runs"]; assert len(r) == 2 and r[0]["accuracy"] > 0.9' \
  || fail "eval --json"
expect 0 'attention.convolution' "$program" info run
grep -qE '^ *bad +[0-9]+ +[0-9]+ +[0-9]+' output.txt || fail "info does not tell the classes"
rm again/data.json
expect 0 '^ *good *$' "$program" info again
expect 0 '"model.width": 16' "$program" info run --json

printf 'xyzxyz90 a xy\nzyx90 b zyxz\n' > input.txt
expect 0 '^1	good	[01]' "$program" predict run --input -
expect 0 '^2	bad	[01]' "$program" predict run --input -
expect 0 '"label":"bad"' "$program" predict run --input - --output jsonl
head -3 texts.tsv > few.tsv
expect 0 '2 of 2 right' "$program" predict run --input few.tsv
expect 0 'label_2	probability_2' "$program" predict run --input few.tsv --top 2
expect 0 '"expected":"good"' "$program" predict run --input few.tsv --output jsonl
expect 2 'first' "$program" predict run --input few.tsv --first 0
: > input.txt

# Rows of numbers: the training data's own file has the labels in its first column.
for i in $(seq 1 60); do printf 'low,0.%s,1\nhigh,7.%s,9\n' "$i" "$i"; done > numbers.csv
expect 0 'cosformer_plus' "$program" train --task value_sequences --data numbers.csv --set model.width=16 \
  --set model.heads=2 --set model.layers=1 --set model.feed_forward=16 --device cpu --steps 5 --out numbers
expect 0 ' of 120 right' "$program" predict numbers --input numbers.csv
expect 2 'do not read the same inputs' "$program" attention-map run numbers --out map

# Broken rows: where, and how to leave them out.
{ cat texts.tsv; echo only-one-column; } > broken.tsv
expect 2 "broken.tsv' line 162: .*--skip-bad-rows" "${train[@]/texts.tsv/broken.tsv}" --steps 1 --out broken
expect 0 'cosformer_plus' "${train[@]/texts.tsv/broken.tsv}" --steps 1 --out broken --skip-bad-rows
expect 2 'expected the folder of a run' "$program" train --resume ''
expect 2 'say with --task what it holds' "$program" train --data texts.tsv
expect 2 'Name with --data' "$program" train --task text_files --data nowhere.tsv --out nowhere
mkdir early && cp run/config.toml early
for command in eval "predict --input few.tsv"; do
  expect 2 'no trained weights' "$program" ${command%% *} early ${command#"${command%% *}"}
done
mkdir nothing
expect 2 'is not a run: it has neither' "$program" generate nothing
expect 2 'no checkpoint of step 41; there are those of' "$program" train --resume run --from 41

# Ctrl-C saves and ends with 130; the same command goes on. Threads sleep soon unless the environment says otherwise.
env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT "${train[@]}" --steps 100000 --out long > output.txt 2>&1 &
process=$!
for _ in $(seq 1 300); do
  [ -s long/best.safetensors ] && break
  sleep 0.1
done
grep -zqx 'GOMP_SPINCOUNT=10000' /proc/$process/environ || fail "threads spin as long as they like"
kill -INT $process
wait $process
[ $? -eq 130 ] || fail "Ctrl-C did not end with 130"
grep -q 'go on with: cosformer train --resume long' output.txt || fail "Ctrl-C does not tell how to go on"
ls long/checkpoints/step-* > output.txt 2>&1 || fail "Ctrl-C left no checkpoint"

# A damaged checkpoint is named, the intact one before it offered, and going on from that works.
newest=$(ls -d run/checkpoints/step-* | tail -1)
printf 'X' | dd of="$newest/model.safetensors" bs=1 seek=900 conv=notrunc 2> /dev/null
expect 2 'is damaged.*--from 40' "$program" train --resume run
expect 0 'going on from step 40' "$program" train --resume run --from 40

# Each ablation beside a task; of two files with the same setting the later one wins.
for file in "$root"/configs/ablation/*.toml; do
  expect 0 "$(sed -n 's/^attention = "\(.*\)"/\1/p' "$file")" "${train[@]}" --config "$file" --steps 1 \
    --out "ablation-$(basename "$file" .toml)"
done
printf '[attention]\nfeature_map = "silu"\n' > silu.toml
expect 0 'cosformer \(feature_map=silu' "${train[@]}" --config "$root/configs/ablation/similarity-identity.toml" \
  --config silu.toml --steps 1 --out two

expect 2 "no setting 'train.lrr'; did you mean 'train.lr'" "${train[@]}" --set train.lrr=1
printf '[train]\nlearning_rate = 3\n' > bad.toml
expect 2 "bad.toml:2: there is no setting 'train.learning_rate'" "${train[@]}" --config bad.toml
expect 2 "'text_files' does not read data.window .*language models" "${train[@]}" --set data.window=64 --out other
expect 2 "no task of this comparison reads data.carry" "$program" compare --task text_files --data texts.tsv \
  --attention cosformer --set data.carry=true --out other
expect 2 "cannot read 'missing.toml'" "${train[@]}" --config missing.toml
expect 2 'one of cosformer, cosformer_plus, softmax, linear' "${train[@]}" --attention softmx
expect 2 'does not read attention.features.*performer, rfa' "${train[@]}" --attention softmax --set attention.features=9
expect 2 'linformer" cannot be causal' "${train[@]}" --attention linformer --set model.causal=true
expect 2 'stochastic positions do not go' "${train[@]}" --attention softmax --set model.positions=stochastic
expect 2 'published method' "${train[@]}" --attention cosformer --set attention.gate=true
expect 2 'not a run' "$program" eval nowhere
expect 2 'not a run' "$program" predict nowhere --input few.tsv
expect 2 'missing.tsv' "$program" predict run --input missing.tsv
printf 'text\tlabel\none\tx\nonly\n' > broken.tsv
expect 2 'broken.tsv.*line 3|broken.tsv:3' "$program" train --task text_files --data broken.tsv --out other
expect 2 'multiple of model.heads' "${train[@]}" --set model.heads=3 --out other
expect 2 'horizon' "${train[@]}" --set attention.horizon=3 --out other
[ -e other ] && fail "a run that could not begin left its folder"

[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
