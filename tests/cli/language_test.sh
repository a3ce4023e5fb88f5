#!/usr/bin/env bash
# Language models through the program: train, go on, evaluate, fine-tune, and what it says to wrong requests.
set -uo pipefail
program=$1
. "$(dirname "$0")/expect.sh"
export XDG_CACHE_HOME=$folder/cache

printf 'a text\nof two lines\n' | iconv -f UTF-8 -t UTF-16 > wide.txt
for i in $(seq 1 2000); do echo "the cat $((i % 7)) sat on the mat and dreamt of $((i % 5)) fish"; done > text.txt
small=(--device cpu --set model.width=16 --set model.heads=2 --set model.layers=1 --set model.feed_forward=32
  --set model.dropout=0 --set train.lr=0.01 --set train.batch_size=4 --set data.window=32 --set train.eval_every=20)
lm=("$program" train --task lm --data text.txt "${small[@]}")

expect 0 'bits_per_byte' "${lm[@]}" --steps 40 --out lm
for file in config.toml best.safetensors metrics.jsonl log.txt result.json tokenizer curves.svg; do
  [ -s "lm/$file" ] || fail "lm/$file is missing"
done
grep -q 'floor of bits_per_byte: pairs of tokens' output.txt || fail "train does not tell what counting reaches"
grep -q 'floor: pairs of tokens' lm/curves.svg || fail "the curves do not show what counting reaches"
expect 0 'going on from step 40' "${lm[@]}" --steps 40 --out lm
expect 0 'floor: single tokens' "$program" eval lm
grep -q 'windows of 32 tokens, no state carried' output.txt || fail "eval does not say how it read"
grep -qE '^ *8-15 ' output.txt || fail "eval has no table by context"
grep -q 'floor: single tokens' lm/context.svg || fail "no plot by context"
expect 0 '"bits_per_byte"' "$program" eval lm --json
python3 - <<'END' || fail "eval --json and result.json differ"
import json, math
evaluated = json.load(open("output.txt"))
run, result = evaluated["runs"][0], json.load(open("lm/result.json"))
for name in ("loss", "perplexity", "word_perplexity", "bits_per_byte"):
    assert math.isclose(run[name], result["test_" + name], rel_tol=1e-5), name
assert run["loss"] < evaluated["floors"]["single tokens"]["loss"]
assert sum(r["tokens"] for r in run["by_context"]) == evaluated["tokens"] == result["test_tokens"]
END
expect 0 'data.window' "$program" info lm

# Words, a carried state, and reading with it.
expect 0 'word_perplexity' "${lm[@]}" --steps 20 --out carried --set data.tokenizer=words --set data.carry=true \
  --set data.max_length=128 --set model.positions=none
expect 0 'state carried over up to 128 tokens' "$program" eval carried
expect 0 'state carried over up to 64 tokens' "$program" eval carried --carry 64
expect 2 'horizon' "$program" eval carried --carry 1024

# A mechanism that does not know the order of tokens, without positions.
expect 0 'note: .*softmax.* nothing tells the order of tokens.*model.positions=rotary' "${lm[@]}" --steps 1 \
  --attention softmax --set model.positions=none --out blind
expect 0 'bits_per_byte' "${lm[@]}" --steps 1 --attention softmax --set model.positions=rotary --out turned
grep -q 'nothing tells the order' output.txt && fail "rotary positions do not tell the order"

# Interrupted while it evaluates: at once, and the evaluation is made again.
for i in $(seq 1 40); do cat text.txt; done > long.txt
"${lm[@]}" --steps 20 --out long --set data.valid_path=long.txt > output.txt 2>&1 < /dev/null &
process=$!
for _ in $(seq 1 600); do
  grep -q '"step":20' long/metrics.jsonl 2> /dev/null && break
  sleep 0.1
done
kill -INT $process
wait $process
[ $? -eq 130 ] || fail "an interrupted evaluation did not end with 130"
grep -q '"evaluation_is_due": true' long/checkpoints/step-00000020/checkpoint.json || fail "the evaluation is not due"
grep -q valid_loss long/metrics.jsonl && fail "the evaluation was not interrupted"

# A tokenizer that is not the run's is refused.
"$program" data tokenizer --kind bytes --out bytes.tokenizer > /dev/null
cp bytes.tokenizer carried/tokenizer
expect 2 'another tokenizer' "$program" eval carried
expect 2 'language model, not a classifier' "$program" predict lm --input text.txt

# Masked, and a classifier that begins as it.
expect 0 'masked_accuracy' "$program" train --task mlm --data text.txt "${small[@]}" --steps 20 --out mlm
expect 0 'masked tokens found' "$program" eval mlm
expect 2 'cosformer train --task text_files --data FILE --set train.init=mlm' "$program" predict mlm --input text.txt
expect 2 'cosformer train --task lm' "$program" generate mlm --prompt the
expect 2 'carry is for autoregressive models' "$program" eval mlm --carry 8

# Another text is read whole; the text of the training once it has grown is refused.
head -c 3000 text.txt > other.txt
expect 0 "^all of 'other.txt': " "$program" eval lm --data other.txt
grep -q 'floor: pairs of tokens' output.txt || fail "eval of another text has no floors"
expect 2 'leave --part out' "$program" eval lm --data other.txt --part valid
cp text.txt kept.txt
echo 'some more of it' >> text.txt
expect 2 "'text.txt' has changed since" "$program" eval lm
expect 0 '^test part: ' "$program" eval lm --data kept.txt
mv kept.txt text.txt
{
  printf 'text\tlabel\n'
  for i in $(seq 1 60); do printf 'the cat %s\tcat\nthe fish %s\tfish\n' "$i" "$i"; done
} > texts.tsv
classify=("$program" train --task text_files --device cpu --set train.batch_size=8 --set train.lr=0.01
  --set train.eval_every=20 --steps 80)
fine=("${classify[@]}" --data texts.tsv)
expect 0 'at most 32 of each' "${fine[@]}" --set train.init=mlm --set train.layer_decay=0.8 --out fine
expect 0 'accuracy' "${fine[@]}" --set model.layers=1 --set model.width=16 --set model.heads=2 --out scratch
expect 0 'floor' "$program" eval fine scratch
printf 'the cat is here\n' > one.txt
expect 0 '^1	cat' "$program" predict fine --input one.txt

# A classifier from nothing in a tokenizer's tokens; cut by bytes, no text would reach the word that tells.
{
  printf 'text\tlabel\n'
  for i in $(seq 1 60); do
    printf 'somewhere underneath cat %s\tcat\nsomewhere underneath fish %s\tfish\n' "$i" "$i"
  done
} > long.tsv
cut -f 1 long.tsv > words.txt
expect 0 'wrote words.tokenizer' "$program" data tokenizer --kind words --input words.txt --out words.tokenizer
words=("${classify[@]}" --data long.tsv --set model.layers=1 --set model.width=16 --set model.heads=2)
expect 0 'at most 8 of each' "${words[@]}" --set data.tokenizer=words.tokenizer --set data.max_length=8 --out words
expect 0 '"accuracy"' "$program" eval words --json
grep -q '"accuracy": 1.0' output.txt || fail "what was learned in tokens is not found by eval"
expect 2 'learned by language models alone' "${words[@]}" --set data.tokenizer=words --out other
expect 2 'data.max_length' "${words[@]}" --set data.tokenizer=words.tokenizer --out other

mv mlm gone
expect 0 'going on from step 80' "$program" train --resume fine
rm fine/tokenizer
expect 2 'lost its tokenizer' "$program" predict fine --input one.txt

expect 2 'needs a file or a folder of text' "$program" train --task lm --out other
expect 2 'nowhere.txt' "$program" train --task lm --data nowhere.txt --out other
expect 2 "'lm' does not read data.train_limit .*classifiers.*, train.layer_decay" "${lm[@]}" --out other \
  --set data.train_limit=10 --set train.layer_decay=0.9
head -c 300 text.txt > tiny.txt
expect 2 'data.tokenizer_vocabulary, or give more text' "${lm[@]/text.txt/tiny.txt}" --out other \
  --set data.tokenizer=sentencepiece
expect 2 'is UTF-16 text.*iconv' "${lm[@]/text.txt/wide.txt}" --out other
expect 2 'no tokenizer' "${lm[@]}" --set data.tokenizer=missing.tokenizer --out other
expect 2 'too short for a batch' "${lm[@]}" --set train.batch_size=4000 --out other
expect 2 'not a run' "${fine[@]}" --set train.init=nowhere --out other
[ -e other ] && fail "a run that could not begin left its folder"

# Without gnuplot the program lives on.
mkdir bin
for tool in sh env; do ln -s "$(command -v $tool)" "bin/$tool"; done
PATH=$folder/bin "$program" eval lm > output.txt 2>&1 < /dev/null || fail "eval without gnuplot"
grep -q 'is it installed' output.txt || fail "eval does not say that gnuplot is missing"

[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
