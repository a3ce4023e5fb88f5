#!/usr/bin/env bash
# What eval and predict are fed: data that have changed or moved, labelled files of the user's own, inputs that come
# line by line, and what they say of it. Every piece of advice that is checked here is followed.
set -uo pipefail
program=$1
. "$(dirname "$0")/expect.sh"

{
  printf 'review\tmood\n'
  for i in $(seq 1 80); do
    printf 'xyzxyz%s a xy\tgood\nzyx%s b zyxz\tbad\n' "$i" "$i"
  done
} > texts.tsv
small=(--set model.width=16 --set model.heads=2 --set model.layers=1 --set model.feed_forward=16 --device cpu
  --set train.lr=0.02 --set train.batch_size=8 --set train.eval_every=20)
columns=(--set data.text_column=review --set data.label_column=mood)
train=("$program" train --task text_files --data texts.tsv "${columns[@]}" "${small[@]}")
expect 0 'cosformer_plus +[0-9.]+ ± [0-9.]+%' "${train[@]}" --steps 60 --out run
grep -q 'standard error of a share of 16 examples' output.txt || fail "nothing says what ± is"

# A labelled file of one's own: all of it, with numbers by class.
printf 'mood\treview\ngood\txyzxyz1 a xy\nbad\tzyx b zyxz\nbad\tzyxzyx\n' > own.tsv
printf 'good\tzyx b zyxz\nmeh\twhat\n\tno label\n' >> own.tsv
expect 0 '4 labelled examples; left out are 1 without a label and 1 with labels .*meh' \
  "$program" eval run --data own.tsv
grep -qE '^bad +2 +3 ' output.txt || fail "eval has no row of the class bad"
grep -qE '^is, taken for +bad +good' output.txt || fail "eval has no confusion matrix"
expect 0 confusion "$program" eval run --data own.tsv --json
python3 - <<'END' || fail "eval --data --json"
import json
j = json.load(open("output.txt"))
run = j["runs"][0]
assert j["part"] is None and j["data"] == "own.tsv" and j["unknown_labels"] == 1 and j["without_label"] == 1, j
assert run["examples"] == 4 and run["confusion"] == [[2, 0], [1, 1]], run
bad, good = run["classes"]
assert bad["class"] == "bad" and abs(bad["precision"] - 2 / 3) < 1e-9 and bad["recall"] == 1, bad
assert good["precision"] == 1 and good["recall"] == 0.5, good
assert run["accuracy"] == 0.75 and abs(run["accuracy_standard_error"] - (0.75 * 0.25 / 4) ** 0.5) < 1e-9, run
END
expect 2 'leave --part out' "$program" eval run --data own.tsv --part test
printf 'review\tmood\none\tx\n' > strange.tsv
expect 2 "has a label that the model knows: they are 'x', and it knows 'bad', 'good'" \
  "$program" eval run --data strange.tsv
printf 'one\ntwo\n' > bare.txt
expect 2 'has a label, without which' "$program" eval run --data bare.txt

# Data that have grown: what is held out now was trained on.
cp texts.tsv before.tsv
printf 'xyzxyz81 a xy\tgood\nzyx81 b zyxz\tbad\n' >> texts.tsv
expect 2 "'texts.tsv' has changed since.*--data FILE" "$program" eval run
expect 2 'has changed since' "$program" eval run --part valid
expect 0 'was trained on, changed since: examples of its training are among these' \
  "$program" eval run --data texts.tsv
expect 0 'the file that the model was trained on' "$program" predict run --input texts.tsv
expect 0 '16 test examples' "$program" eval run --data before.tsv
mv texts.tsv grown.tsv
expect 2 "not at 'texts.tsv' .*where they are now with --data" "$program" eval run
expect 2 "not at 'texts.tsv'" "$program" train --resume run
expect 2 'does not hold the data that' "$program" train --resume run --data grown.tsv
mkdir elsewhere
mv before.tsv elsewhere/moved.tsv
mv run elsewhere/run
expect 0 '16 test examples' "$program" eval elsewhere/run --data elsewhere/moved.tsv
expect 0 'at .elsewhere/moved.tsv. from now on' "$program" train --resume elsewhere/run --data elsewhere/moved.tsv
expect 0 '16 test examples' "$program" eval elsewhere/run
mv elsewhere/run run

# How far a run has come; without its best weights it goes on from its checkpoint, as is said.
expect 0 '^steps +60 of 60.*; ended' "$program" info run
cp -r run cut
rm -r cut/result.json cut/checkpoints/step-00000060
expect 0 '^steps +40 of 60 .*; not ended, go on with: cosformer train --resume cut' "$program" info cut
expect 0 '"total_steps": 60' "$program" info cut --json
cp -r run lost
rm lost/best.safetensors
expect 2 "no trained weights .*train --resume lost" "$program" eval lost
expect 0 'the best weights .* are gone' "$program" train --resume lost
expect 0 '16 test examples' "$program" eval lost
rm -r lost/best.safetensors lost/checkpoints
expect 2 'has lost its trained weights .*and its checkpoints' "$program" eval lost

# Lines: every one has its answer, as soon as it has come.
printf 'xyzxyz a\n\nzyx b\r\n  \nzyxz and so on, beyond what was ever read' > input.txt
expect 0 '^5	bad' "$program" predict run --input -
grep -q '1 input is longer than the 13 bytes that the model reads' output.txt || fail "predict cuts in silence"
"$program" predict run --input - --echo < input.txt 2> /dev/null > output.txt
python3 - <<'END' || fail "blank lines are not kept"
rows = open("output.txt").read().split("\n")
assert rows[0] == "input\tlabel\tprobability\ttext" and len(rows) == 7, rows
assert rows[2] == "2\t\t\t" and rows[4] == "4\t\t\t", rows
assert rows[3].startswith("3\tbad\t") and rows[3].endswith("\tzyx b"), rows
assert rows[5].endswith("beyond what was ever read"), rows
END
expect 0 '"cut_at":13' "$program" predict run --input - --output jsonl
: > input.txt
mkfifo questions
"$program" predict run --input - < questions > answers.txt 2> errors.txt &
process=$!
exec 3> questions
printf 'xyzxyz a\n' >&3
for _ in $(seq 1 300); do
  grep -q '^1	good' answers.txt && break
  sleep 0.1
done
grep -q '^1	good' answers.txt || fail "an answer waits for the end of the input"
printf 'zyx b\n' >&3
exec 3>&-
wait $process || fail "predict of a pipe"
grep -q '^2	bad' answers.txt || fail "the second line has no answer"
expect 0 "1 row has a label that the model does not know \('meh'\)" "$program" predict run --input own.tsv
grep -q '3 of 4 right (75.00 ± 21.65%), 2 without a label' output.txt || fail "unknown labels are not left out"
gzip -k own.tsv
expect 0 '3 of 4 right' "$program" predict run --input own.tsv.gz

# A model without a table of positions reads on.
expect 0 'accuracy' "$program" train --task text_files --data elsewhere/moved.tsv "${columns[@]}" "${small[@]}" \
  --attention softmax --set model.positions=none --steps 20 --out free
printf 'xyzxyz a and so on, beyond what was ever read\n' > long.txt
expect 0 '1 input is longer than the longest of the model.s training, 13 bytes; they were read' \
  "$program" predict free --input long.txt
expect 0 '^1	' "$program" predict free --input long.txt --output tsv
head -c 9 long.txt > short.txt
"$program" predict free --input long.txt 2> /dev/null | tail -1 > whole.txt
"$program" predict free --input short.txt 2> /dev/null | tail -1 > part.txt
cmp -s whole.txt part.txt && fail "a long text is answered as its beginning"

# Options that do nothing for the run at hand.
expect 2 '--write is for text-to-text runs' "$program" eval run --write 3
expect 2 '--context is for language models' "$program" eval run --context 3
expect 2 '--draw is for images' "$program" predict run --input own.tsv --draw
expect 2 '--labelled is for sequences' "$program" predict run --input own.tsv --labelled
expect 2 '--top is for TSV' "$program" predict run --input own.tsv --output jsonl --top 2

# Below its baseline: what to try.
expect 0 'is not better than a rule that understands nothing' "${train[@]/texts.tsv/elsewhere/moved.tsv}" --steps 1 \
  --set train.lr=1e-9 --out untrained
grep -q 'Worth trying, in a new run' output.txt || fail "nothing says what to try"
expect 0 'more steps \(--steps, now 1' "$program" eval untrained
expect 1 'Begin a new run \(another --out' "${train[@]/texts.tsv/elsewhere/moved.tsv}" --steps 60 --set train.lr=1e30 \
  --set train.clip=0 --set train.log_every=1 --out diverged

[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
