#!/usr/bin/env bash
# Attention maps of language models: a text of the user's, a layer and a head, characters along the axes.
set -uo pipefail
program=$1
. "$(dirname "$0")/expect.sh"

for i in $(seq 1 2000); do echo "the cat sees $i dogs"; done > book.txt
for attention in cosformer_plus softmax; do
  expect 0 'trained 3 steps' "$program" train --task lm --data book.txt --attention $attention --out $attention \
    --set data.cache=cache --device cpu --set data.window=64 --set model.width=16 --set model.heads=2 \
    --set model.layers=2 --set model.feed_forward=16 --set train.batch_size=2 --steps 3
done

expect 0 'softmax +2 ' "$program" attention-map cosformer_plus softmax --prompt 'the cät' --layer 2 --head 2 --out map
for file in map.png map.svg weights-1.tsv weights-2.tsv summary.json; do
  [ -s map/$file ] || fail "map/$file is missing"
done
# <eod> and eight bytes, of which two are one character; each sees itself and what came before, and softmax' rows sum to
# one.
python3 - > output.txt 2>&1 << 'PYTHON' || fail "the weights: $(cat output.txt)"
for number in (1, 2):
    rows = [[float(x) for x in line.split("\t")] for line in open(f"map/weights-{number}.tsv")]
    assert len(rows) == 9 and all(len(row) == 9 for row in rows), rows
    assert all(rows[i][j] == 0 for i in range(9) for j in range(i + 1, 9)), "a token sees what comes after it"
    assert number == 1 or all(abs(sum(row) - 1) < 1e-4 for row in rows), rows
PYTHON
for label in '&lt;eod>' '␣' 'ä'; do
  grep -q ">$label<" map/map.svg || fail "the axes do not show $label"
done

# Another head and another layer are other weights.
expect 0 'layer 2' "$program" attention-map softmax --prompt 'the cät' --layer 2 --head 1 --out head
cmp -s head/weights-1.tsv map/weights-2.tsv && fail "two heads have the same weights"
expect 0 'layer 1' "$program" attention-map softmax --prompt 'the cät' --layer 1 --head 2 --out layer
cmp -s layer/weights-1.tsv map/weights-2.tsv && fail "two layers have the same weights"
printf 'the cät' > text.txt
expect 0 '"share_within_16"' "$program" attention-map softmax --prompt-file text.txt --layer 2 --head 2 --out file \
  --json
cmp -s file/weights-1.tsv map/weights-2.tsv || fail "a text from a file has other weights than the same as --prompt"

expect 2 'has layers 1 to 2' "$program" attention-map softmax --prompt a --layer 3 --out none
expect 2 'has heads 1 to 2' "$program" attention-map softmax --prompt a --head 3 --out none
expect 2 'give --prompt TEXT or --prompt-file' "$program" attention-map softmax --out none
expect 2 'leave --input' "$program" attention-map softmax --input text.txt --out none
expect 2 'cannot read .nowhere.' "$program" attention-map softmax --prompt-file nowhere --out none
expect 2 'give a shorter one' "$program" attention-map softmax --prompt "$(printf 'a%.0s' $(seq 1 80))" --out none
expect 2 '--prompt is for language models' "$program" attention-map --task listops --attention softmax --prompt a
[ -e none ] && fail "what cannot be drawn left a folder"

[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
