#!/usr/bin/env bash
# A run as one file: it says what the run says, elsewhere, and only whole.
set -uo pipefail
program=$1
. "$(dirname "$0")/expect.sh"
export XDG_CACHE_HOME=$folder/cache

for i in $(seq 1 300); do echo "the cat $((i % 7)) sat on the mat and dreamt of $((i % 5)) fish"; done > text.txt
{ printf 'text\tlabel\n'; for i in $(seq 1 60); do printf 'cat %s\tmeow\nfish %s\tblub\n' "$i" "$i"; done; } > texts.tsv
sed '1s/.*/source\ttarget/' texts.tsv > pairs.tsv
small=(--device cpu --set model.width=16 --set model.heads=2 --set model.layers=1 --set model.feed_forward=16
  --set train.lr=0.01 --set train.batch_size=8 --steps 10)
"$program" train --task text_files --data texts.tsv "${small[@]}" --out runs/labels > output.txt 2>&1 || fail "train"
"$program" train --task lm --data text.txt "${small[@]}" --set data.window=32 --set data.tokenizer=words \
  --out runs/words > output.txt 2>&1 || fail "train lm"
"$program" train --task mlm --data text.txt "${small[@]}" --set data.window=32 --out runs/masked > output.txt 2>&1 \
  || fail "train mlm"
"$program" train --task text_to_text --data pairs.tsv "${small[@]}" --set data.tokenizer=words --out runs/answers \
  > output.txt 2>&1 || fail "train text_to_text"

mkdir elsewhere
expect 0 'wrote labels.safetensors' "$program" bundle runs/labels
expect 0 'predict elsewhere/l --input FILE' "$program" bundle runs/labels/ --out elsewhere/l
for run in words masked answers; do
  expect 0 'the tokenizer, a checksum' "$program" bundle runs/$run --out elsewhere/$run
done
cut -f 1 texts.tsv | tail -5 > new.txt
same() {  # RUN-COMMAND… with RUN and with its bundle
  local run=$1 file=$2
  shift 2
  "$program" "${@//RUN/$run}" > expected.txt 2> errors.txt || fail "$*"
  mv "$run" "$run.away"
  "$program" "${@//RUN/$file}" > got.txt 2> errors.txt || { cp errors.txt output.txt; fail "$* with the bundle"; }
  mv "$run.away" "$run"
  diff <(grep -v '"run":\|per_second\|^run \|plot: \|tokens/s' expected.txt) \
    <(grep -v '"run":\|per_second\|^run \|plot: \|tokens/s' got.txt) > output.txt || fail "$* differs"
}
same runs/labels elsewhere/l predict RUN --input new.txt
same runs/words elsewhere/words generate RUN --prompt 'the cat' --max-tokens 8 --temperature 0.5 --seed 3
same runs/answers elsewhere/answers predict RUN --input new.txt
same runs/words elsewhere/words eval RUN --data text.txt --json
same runs/masked elsewhere/masked eval RUN --data text.txt --json
same runs/answers elsewhere/answers eval RUN --data pairs.tsv --json
expect 0 '"valid_accuracy"' "$program" info elsewhere/l --json
# A classifier can begin as a bundled language model.
expect 0 'accuracy' "$program" train --task text_files --data texts.tsv --device cpu --steps 2 \
  --set train.batch_size=8 --set train.init=elsewhere/masked --out runs/fine

# Weights by name, for whoever reads safetensors files; a byte that differs is noticed, wherever it is.
python3 - <<'END_PYTHON' || fail "the weights are not under their names"
import json
data = open("elsewhere/l", "rb").read()
header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
assert "encoder.token_embedding.weight" in header and "cosformer.model" in header["__metadata__"]
END_PYTHON
for place in 300 -1 -400; do
  python3 - $place <<'END_PYTHON'
import sys
data = bytearray(open("elsewhere/words", "rb").read())
data[int(sys.argv[1])] ^= 1
open("damaged", "wb").write(data)
END_PYTHON
  expect 2 'damaged' "$program" generate damaged --prompt a
done
expect 2 'neither a run.s folder nor a bundle' "$program" predict runs/labels/best.safetensors --input new.txt
expect 2 'a bundle is made of a run' "$program" bundle elsewhere/l
expect 2 'exists and is not a bundle' "$program" bundle runs/labels --out runs/labels/best.safetensors
expect 2 'is not a run' "$program" bundle nowhere
[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
