#!/usr/bin/env bash
# Too little of everything, and files that are not what they should be: the program ends at once with a clear error.
set -uo pipefail
program=$1
. "$(dirname "$0")/expect.sh"
soon=(timeout 30)

# Too little address space: libraries would wait for ever, or end the process before anybody could say why.
for kilobytes in 600000 650000 700000 750000 800000; do
  (ulimit -v "$kilobytes" && "${soon[@]}" "$program" info) > output.txt 2>&1
  code=$?
  # Below what the libraries alone need, the system's loader says so itself, with 127.
  if [ $code -eq 127 ]; then
    grep -q 'failed to map\|cannot allocate\|cannot create' output.txt || fail "$kilobytes kB: the loader says nothing"
  else
    [ $code -eq 1 ] || fail "$kilobytes kB of address space: exit code $code"
    grep -q 'address space (ulimit -v) is too low' output.txt || fail "$kilobytes kB: nothing is said of the limit"
  fi
done

{
  printf 'text\tlabel\n'
  for i in $(seq 1 60); do printf 'xyz %s a\tgood\nzyx %s b\tbad\n' "$i" "$i"; done
} > texts.tsv
train=("$program" train --task text_files --data texts.tsv --set model.width=16 --set model.heads=2 --set model.layers=1
  --set model.feed_forward=16 --device cpu --set train.batch_size=8 --set train.log_every=1 --set train.eval_every=10)
expect 0 'trained 20 steps' "${soon[@]}" "${train[@]}" --steps 20 --out run

# Bits of the weights: noticed by their checksum.
cp -r run flipped
python3 - << 'END'
import json, struct
data = bytearray(open("flipped/best.safetensors", "rb").read())
data[-5] ^= 4
open("flipped/best.safetensors", "wb").write(data)
END
printf 'xyz a\n' > lines.txt
expect 2 'the checksum differs' "$program" predict flipped --input lines.txt
# Weights of nothing but NaN, without a checksum.
python3 - << 'END'
import json, struct
data = open("run/best.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
header["__metadata__"].pop("cosformer.crc32")
assert all(entry["dtype"] == "F32" for name, entry in header.items() if name != "__metadata__")
text = json.dumps(header).encode()
nan = struct.pack("<f", float("nan")) * ((len(data) - 8 - size) // 4)
open("flipped/best.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + nan)
END
expect 2 'not finite numbers' "$program" predict flipped --input lines.txt

# Pipes that nobody writes to and files without an end.
mkfifo pipe
for what in pipe /dev/zero; do
  expect 2 'not a regular file' "${soon[@]}" "$program" predict run --input "$what"
  expect 2 'not a regular file' "${soon[@]}" "$program" train --config "$what" --out none
  expect 2 'cannot find the data' "${soon[@]}" "$program" train --task text_files --data "$what" \
    --set data.format=tsv --out none
  expect 2 'not a regular file' "${soon[@]}" "$program" train --task lm --data "$what" --out none
done
cp -r run piped
for file in result.json metrics.jsonl checkpoints/step-00000020/checkpoint.json \
  checkpoints/step-00000020/model.safetensors; do
  mv "piped/$file" kept
  mkfifo "piped/$file"
  expect 2 'not a regular file' "${soon[@]}" "$program" train --resume piped
  rm "piped/$file"
  mv kept "piped/$file"
done
mkfifo piped/pipe && mv piped/result.json kept && mv piped/pipe piped/result.json
expect 2 'not a regular file' "${soon[@]}" "$program" info piped
rm piped/result.json
printf '{"parameters": "many"}' > piped/result.json
expect 2 "'parameters' must be a whole number" "${soon[@]}" "$program" eval piped
# What is handed over open is read: standard input, a shell's <(...).
expect 0 'good|bad' "$program" predict run --input <(cat lines.txt)

# A key of a hundred thousand parts, JSON a hundred thousand levels deep.
python3 -c 'print("a." * 100000 + "a = 1")' > deep.toml
expect 2 'a key of more than 16 parts' "${soon[@]}" "$program" train --config deep.toml --out none
python3 -c 'print("{\"a\":" * 100000 + "1" + "}" * 100000)' > piped/result.json
expect 2 'nested deeper than 64' "${soon[@]}" "$program" info piped --json

# Absurd settings: refused before anything is built.
for setting in model.width=65536 train.accumulate=4611686018427387904 train.epochs=1e300; do
  expect 2 'more than this machine|must be a' "${soon[@]}" "${train[@]}" --out none --set model.layers=1000 \
    --set "$setting"
done

# A folder that links to itself, a line without an end, a small file that unpacks to a large one.
mkdir -p texts
for i in $(seq 1 300); do echo "the cat sat on the mat and dreamt of fish $i"; done > texts/a.txt
ln -s . texts/x
ln -s . texts/y
lm=("$program" train --task lm --set data.window=32 --set model.width=16 --set model.heads=2 --set model.layers=1
  --set model.feed_forward=16 --device cpu --set train.batch_size=4 --steps 2 --set data.cache=cache)
expect 0 'trained 2 steps' "${soon[@]}" "${lm[@]}" --data texts --out circle
head -c 70000000 /dev/zero | tr '\0' 'a' > long.txt
expect 2 'a line in it is longer than 64 MB.*data.max_line_megabytes' "${soon[@]}" "${lm[@]}" --data long.txt \
  --set data.documents=lines --out none
expect 2 'a line in it is longer than 64 MB' "${soon[@]}" "$program" data corpus --input long.txt \
  --documents lines --cache cache
expect 0 'documents' "${soon[@]}" "$program" data corpus --input long.txt --documents lines --cache cache \
  --max-line-megabytes 80
rm long.txt cache/*.tokens
head -c 400000000 /dev/zero | gzip -1 > zeros.txt.gz
expect 2 'unpack it \(gunzip\)' "${soon[@]}" "${lm[@]}" --data zeros.txt.gz --out none
[ -e none ] && fail "a folder was left by what was refused"
ls cache/.*.tmp > output.txt 2>&1 && fail "a cache that was not finished was left"

# A disk that is full: the reason is the system's, what was saved stays, and it goes on where there is room again.
for blocks in 1 4 16; do
  (trap '' XFSZ; ulimit -f "$blocks"; "${soon[@]}" "${train[@]}" --steps 20 --out "full-$blocks") > output.txt 2>&1
  code=$?
  [ $code -eq 1 ] || fail "with files of at most $blocks kB: exit code $code"
  grep -q 'File too large' output.txt || fail "with files of at most $blocks kB: the reason is not named"
done
expect 0 'trained 20 steps' "${soon[@]}" "${train[@]}" --steps 20 --out full-16

[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
