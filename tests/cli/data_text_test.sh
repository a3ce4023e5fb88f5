#!/usr/bin/env bash
# `cosformer data tokenizer` and `cosformer data corpus` from outside.
set -uo pipefail
cosformer=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

# expect CODE TEXT COMMAND…: the exit code, and a text in what it writes
expect() {
  local code=$1 text=$2
  shift 2
  "$@" > out 2>&1
  local got=$?
  if [ "$got" -ne "$code" ] || ! grep -qF -- "$text" out; then
    echo "FAILED: $*: exit code $got, expected $code and '$text':"
    cat out
    failures=$((failures + 1))
  fi
}

for number in $(seq 400); do
  echo "document $number tells of the number $((number * 37 % 1000)), and of the number $((number * 91 % 1000))"
  echo
done > texts.txt
printf '{"text": "one"}\nbroken\n' > rows.jsonl

expect 0 "words, " "$cosformer" data tokenizer --kind words --input texts.txt --out words.tokenizer
expect 0 "bytes, 258 tokens" "$cosformer" data tokenizer --kind bytes --out bytes.tokenizer
expect 2 "--input is missing" "$cosformer" data tokenizer --kind words --out x
expect 2 "expected 264" "$cosformer" data tokenizer --vocabulary 100 --input texts.txt --out x
expect 0 "sentencepiece, 300 tokens" "$cosformer" data tokenizer --vocabulary 300 --input texts.txt \
  --out pieces.tokenizer
# SentencePiece and libtorch in one program, on a whole corpus.
expect 0 "document 2, " "$cosformer" data corpus --input texts.txt --tokenizer pieces.tokenizer --documents lines \
  --cache cache --show 2
expect 0 "made cache/" "$cosformer" data corpus --input texts.txt --documents blank_lines --cache cache
expect 0 "opened cache/" "$cosformer" data corpus --input texts.txt --documents blank_lines --cache cache --verify
expect 0 "documents drawn with seed 0" "$cosformer" data corpus --input texts.txt --documents blank_lines --cache cache
echo "one more line" >> texts.txt
expect 0 "made cache/" "$cosformer" data corpus --input texts.txt --documents blank_lines --cache cache
for cache in cache/*.tokens; do truncate -s -1 "$cache"; done
expect 0 "made cache/" "$cosformer" data corpus --input texts.txt --documents blank_lines --cache cache
expect 2 "rows.jsonl' line 2: it is not valid JSON" "$cosformer" data corpus --input rows.jsonl --cache cache
expect 0 "1 rows were left out of 2" "$cosformer" data corpus --input rows.jsonl --cache cache --skip-bad-rows \
  --valid-fraction 0
expect 2 "expected files, blank_lines, lines or stream" "$cosformer" data corpus --input texts.txt --documents pages
expect 2 "there is no tokenizer 'nothing'" "$cosformer" data corpus --input texts.txt --tokenizer nothing
expect 2 "there is no such file" "$cosformer" data corpus --input missing.txt --cache cache
[ "$failures" -eq 0 ] && echo "tokenizers and corpora behave"
exit "$failures"
