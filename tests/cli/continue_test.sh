#!/usr/bin/env bash
# What `cosformer train` does without being told, and going on beyond an end.
set -uo pipefail
program=$1
. "$(dirname "$0")/expect.sh"
export XDG_CACHE_HOME=$folder/cache

write_rows() {  # FIRST LAST
  printf 'review\tmood\n'
  for i in $(seq "$1" "$2"); do printf 'xyzxyz%s a xy\tgood\nzyx%s b zyxz\tbad\n' "$i" "$i"; done
}
mkdir data
write_rows 1 60 > "data/my reviews.tsv"
cp "data/my reviews.tsv" reviews.tsv
mkdir texts
for i in $(seq 1 2000); do echo "the cat $((i % 7)) sat on the mat and dreamt of $((i % 5)) fish"; done > texts/text.txt
settings=(--set data.text_column=review --set data.label_column=mood --device cpu --set train.lr=0.02
  --set model.width=16 --set model.heads=2 --set model.layers=1 --set model.feed_forward=16
  --set train.batch_size=8 --set train.eval_every=10)

# Nothing to train is a question, not a training.
expect 2 'say what to train' "$program" train
grep -q -- '--continue' output.txt || fail "cosformer train alone does not show its usage"
expect 2 'nothing says what to learn' "$program" train --steps 5
[ -e runs ] && fail "a folder was made without a task"

# The default folder has the data's name.
expect 0 'run folder: runs/my_reviews-cosformer_plus-0' "$program" train --task text_files \
  --data 'data/my reviews.tsv' "${settings[@]}" --steps 1
expect 0 'run folder: runs/texts-softmax-3' "$program" train --task lm --data texts/ --attention softmax --seed 3 \
  --device cpu --set model.width=16 --set model.heads=2 --set model.layers=1 --set data.window=32 \
  --set train.batch_size=4 --set model.positions=learned --steps 1

train=("$program" train --task text_files --data reviews.tsv "${settings[@]}")
expect 0 'cosformer_plus +[0-9.]+ ± [0-9.]+%' "${train[@]}" --steps 20 --out run
expect 2 'For 100 steps more say --steps 120' "$program" train --continue run --steps 20
expect 2 'keeps model.width' "$program" train --continue run --steps 40 --set model.width=32
expect 2 'keeps train.batch_size' "$program" train --continue run --steps 40 --set train.batch_size=4
expect 2 'goes on with the run as it is' "$program" train --continue run --attention softmax
expect 2 'is not a run' "$program" train --continue nowhere --steps 40
expect 2 'counted by cosformer train --continue' "${train[@]}" --set train.continued=1 --out other
grep -q 'steps = 20' run/config.toml || fail "a refused request changed the run's settings"

expect 0 'continued at step 20: 20 more steps' "$program" train --continue run --steps 40
grep -q 'continued at step 20' run/log.txt || fail "the log does not say that the run was continued"
expect 0 '"continued_at"' cat run/result.json
expect 0 '"continued":1' cat run/metrics.jsonl
expect 0 'steps += 40' grep 'steps' run/config.toml
expect 0 'going on from step 40' "$program" train --resume run
expect 2 'other settings \(train.steps' "${train[@]}" --steps 20 --out run

# More rows in the same file, and others: taken when they are named, in the epochs that the settings have.
write_rows 1 90 > reviews.tsv
expect 2 'name them with --data' "$program" train --continue run --steps 60
expect 2 'trained on other data.*--continue run --data' "$program" train --resume run
expect 0 'continued at step 40: 19 more steps, on other data' "$program" train --continue run --data reviews.tsv
expect 0 'floor: most frequent' "$program" eval run
printf 'review\tmood\n' > three.tsv
for i in $(seq 1 40); do printf 'a\tgood\nb\tbad\nc\tmeh\n'; done >> three.tsv
expect 2 "they have the classes 'bad', 'good', 'meh', and its model was made for 'bad', 'good'" \
  "$program" train --continue run --data three.tsv
[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
