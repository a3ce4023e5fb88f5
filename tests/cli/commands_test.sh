#!/usr/bin/env bash
# The program from outside: exit codes, messages on the right stream, output that machines can read.
set -uo pipefail
cosformer=$1
. "$(dirname "$0")/streams.sh"

expect 2 "no command" "$cosformer"
contains err "usage: cosformer COMMAND"
expect 2 "unknown command" "$cosformer" frobnicate
contains err "unknown command 'frobnicate'"
contains err "check"
expect 2 "unknown option" "$cosformer" info --frobnicate
contains err "--frobnicate"
expect 2 "a command misspelt" "$cosformer" trian
contains err "unknown command 'trian'; did you mean train?"
expect 2 "an unknown option and no command" "$cosformer" --frobnicate
contains err "there is no option '--frobnicate'"
expect 2 "an unknown part of a command" "$cosformer" bench frobnicate
contains err "'frobnicate' is none of decode, peers, train, attention"
expect 1 "a folder that takes no files" "$cosformer" bench attention --lengths 16 --heads 1 --dims 8 --seconds 0.01 \
  --impl chunked --json /proc/x.json
contains err "cannot create a temporary file beside '/proc/x.json'"
expect 2 "a tokenizer into no folder" "$cosformer" data tokenizer --input "$work/none" --out "$work/no/folder/x.tok"
contains err "no/folder/' does not exist; create it first"
expect 2 "bad number" "$cosformer" check --cases many
contains err "--cases: expected a whole number, from 1 to 10000000; got 'many'"
expect 2 "a negative count" "$cosformer" data listops --out "$work/none" --train -5
contains err "--train: expected a whole number, from 0 to 100000000; got '-5'"
expect 2 "a negative seed" "$cosformer" check --seed -1
contains err "--seed: expected a whole number"
expect 2 "more threads than could help" "$cosformer" check --threads 1000000
contains err "--threads: expected a whole number, from 0 to"
expect 2 "not a number" "$cosformer" generate "$work/none" --temperature nan
contains err "--temperature: expected a number; got 'nan'"
expect 2 "a number beyond its limits" "$cosformer" bench attention --seconds 1e9
contains err "--seconds: expected a number, from 0.0100 to 600; got '1e9'"
expect 0 "the largest seed" "$cosformer" check --seed 18446744073709551615 --cases 1 --max-length 8
expect 2 "bad list" "$cosformer" bench attention --lengths 12,x
contains err "--lengths: expected whole numbers from 1"
expect 2 "bad dtype" "$cosformer" check --dtypes float8
contains err "float64, float32, bfloat16, float16; got 'float8'"
expect 0 "help" "$cosformer" --help
expect 0 "help of a command" "$cosformer" bench attention --help
contains out "--lengths"
# Descriptions of options are sentences, on lines that a terminal can show.
for command in train eval predict compare attention-map generate bundle info check "bench attention" "bench peers" \
  "bench train" "bench decode" "data tokenizer" "data corpus" "data listops" "data pathfinder"; do
  # shellcheck disable=SC2086
  expect 0 "help of $command" "$cosformer" $command --help
  awk 'length > 120 { exit 1 }' "$work/out" || fail "a line of the help of $command has more than 120 columns"
done
expect 0 "version" "$cosformer" --version
contains out "cosformer 0."
expect 0 "info" "$cosformer" info
contains out "instruction sets"
expect 0 "info as JSON" "$cosformer" info --json
contains out '"instruction_set_chosen"'
expect 2 "an instruction set that does not exist" env COSFORMER_CPU_ISA=quantum "$cosformer" info
contains err "quantum"
expect 2 "the same for bench" env COSFORMER_CPU_ISA=quantum "$cosformer" bench attention --lengths 16
contains err "quantum"
expect 1 "output that cannot be written" bash -c "\"$cosformer\" info > /dev/full"
expect 0 "check" "$cosformer" check --cases 20 --max-length 40
contains out "within their bound"
expect 0 "check as JSON" "$cosformer" check --cases 8 --max-length 30 --json
contains out '"error_bound"'
expect 0 "bench" "$cosformer" bench attention --lengths 64 --heads 2 --dims 16 --seconds 0.01 \
  --impl chunked,quadratic,recurrent,softmax --dtypes float32,bfloat16 --decay both --threads 2 \
  --json "$work/bench.json"
if [ "$(wc -l < "$work/bench.json")" -ne 56 ]; then
  fail "$(wc -l < "$work/bench.json") lines of JSON, expected 56"
fi
for field in bench impl pass device dtype causal batch heads length dim threads median_ms min_ms p90_ms tokens_per_s \
  peak_bytes max_error error_bound roof_fraction best_fraction; do
  if [ "$(grep -c "\"$field\":" "$work/bench.json")" -ne "$(wc -l < "$work/bench.json")" ]; then
    fail "'$field' is not on every line of the JSON file"
  fi
done
expect 0 "bench beside softmax, whose bound is that of its formula" "$cosformer" bench attention --lengths 64,128 \
  --seconds 0.01
expect 0 "bench of decoding" "$cosformer" bench attention --pass decode --lengths 1,3 --batch 3 --heads 2 --dims 16 \
  --seconds 0.02 --rounds 2 --impl chunked --dtypes float32,bfloat16 --decay both --json "$work/decode.json"
if [ "$(grep -c '"pass":"decode".*"roof_fraction":[0-9]' "$work/decode.json")" -ne 8 ]; then
  fail "expected 8 measurements of decoding, each with its fraction of a copy:"
  cat "$work/decode.json"
fi
expect 0 "which CUDA kernels a shape has" "$cosformer" bench attention --explain --dtypes bfloat16,float32 \
  --dims 64,128,256 --lengths 8,65536 --heads 8 --pass fwd+bwd,decode --decay both
for word in "hopper/narrow" "hopper/wide" "hopper/both_sides" "decode" "general" "TMA" "cooperative" "bytes"; do
  contains out "$word"
done
expect 0 "the same of another GPU" "$cosformer" bench attention --explain=a100 --dtypes bfloat16 --lengths 1024
contains out "the Hopper kernels are for devices of compute capability 9.0"
expect 2 "a GPU that nobody has described" "$cosformer" bench attention --explain=abacus
expect 2 "nothing to explain" "$cosformer" bench attention --explain --impl softmax
contains err "add --impl chunked"
expect 2 "decoding without the causal order" "$cosformer" bench attention --pass decode --causal no --impl chunked
contains err "decoding is causal"
expect 2 "a JSON file that cannot be written" "$cosformer" bench attention --lengths 16 --heads 1 --dims 8 \
  --seconds 0.01 --impl chunked --json "$work/no/such/folder/x.json"
expect 2 "bench train: no such mechanism" "$cosformer" bench train --attention cosfarmer
contains err "--attention: expected a list of cosformer"
expect 2 "bench train: a bad length" "$cosformer" bench train --lengths 0
contains err "--lengths: expected whole numbers from 1"
expect 2 "bench train: a bad mask" "$cosformer" bench train --causal maybe
contains err "--causal: expected a list of no, yes; got 'maybe'"
expect 2 "bench train: heads that do not divide the width" "$cosformer" bench train --width 30 --heads 4
contains err "--width must be a multiple of --heads; got 30 and 4"
expect 2 "bench train: an option of --peers alone" "$cosformer" bench train --rounds 2
contains err "--peers"
expect 2 "bench train: no such folder of scripts" "$cosformer" bench train --peers --scripts "$work" --lengths 16
expect 0 "bench train" "$cosformer" bench train --lengths 32,64 --attention cosformer,cosformer_plus,softmax,linear \
  --width 32 --batch 2 --feed-forward 32 --seconds 0.01 --json "$work/train.json"
contains out "faster than softmax by"
for field in attention causal length parameters median_ms min_ms p90_ms steps_per_s inference_steps_per_s \
  tokens_per_s peak_bytes losses; do
  if [ "$(grep -c "\"$field\":" "$work/train.json")" -ne 16 ]; then
    fail "'$field' is not on each of 16 lines of the JSON file"
  fi
done
expect 0 "bench train: what takes too long is skipped" "$cosformer" bench train --lengths 65536 --batch 64 \
  --attention softmax --causal no --most-seconds 0.1
contains out "would take about"
if python3 -c "import torch" 2> "$work/no_torch" || /usr/bin/python3 -c "import torch" 2> "$work/no_torch"; then
  expect 0 "bench peers" "$cosformer" bench peers --lengths 64 --heads 2 --dim 16 --seconds 0.01 \
    --json "$work/peers.json"
  contains out "chunked_torch"
  if [ "$(grep -c '"median_ms":[0-9]' "$work/peers.json")" -ne 18 ]; then
    fail "not all of 18 peers were measured:"
    cat "$work/peers.json"
  fi
  if [ "$(grep -c '"peer":"copy"' "$work/peers.json")" -ne 4 ]; then
    fail "expected a copy in each of 4 settings:"
    cat "$work/peers.json"
  fi
  # An interpreter with another torch, which cannot load the operator: its peers run beside, and are marked.
  cat > "$work/other_python" <<'SCRIPT'
#!/bin/sh
case "$*" in *load_library*) exit 1 ;; esac
command -v python3 > /dev/null && python3 -c "import torch" 2> /dev/null && exec python3 "$@"
exec /usr/bin/python3 "$@"
SCRIPT
  chmod +x "$work/other_python"
  expect 0 "bench peers with another torch" "$cosformer" bench peers --lengths 64 --heads 2 --dim 16 --seconds 0.01 \
    --python "$work/other_python" --json "$work/peers.json"
  contains out "softmax_unfused *"
  contains out "in a process of its own with this torch"
  contains out "GLIBC_TUNABLES=glibc.malloc.mmap_max=0"
  if [ "$(grep -c '"median_ms":[0-9]' "$work/peers.json")" -ne 28 ]; then
    fail "not all of 28 peers were measured:"
    cat "$work/peers.json"
  fi
  expect 2 "bench peers with no Python" "$cosformer" bench peers --lengths 64 --python /bin/false
  contains err "is no Python that can import torch"
  # The same model in torch, from the same weights: the losses of five steps must be the same.
  expect 0 "bench train beside torch" "$cosformer" bench train --peers --rounds 1 --lengths 64 --width 32 --batch 2 \
    --seconds 0.01 --json "$work/train.json"
  contains out "torch: released"
  if [ "$(grep -c '"median_ms":[0-9]' "$work/train.json")" -ne 9 ]; then
    fail "not all of 9 models were measured:"
    cat "$work/train.json"
  fi
fi
expect 0 "listops" "$cosformer" data listops --out "$work/listops" --train 30 --valid 5 --test 5 --tsv
contains out "train"
cp "$work/listops/basic_train.tsv" "$work/first.tsv"
expect 0 "listops again" "$cosformer" data listops --out "$work/again" --train 30 --valid 5 --test 5 --tsv --threads 1
cmp -s "$work/first.tsv" "$work/again/basic_train.tsv" || {
  fail "same seed, other bytes"
}
expect 2 "listops with other options into the same folder" "$cosformer" data listops --out "$work/listops" --seed 2 \
  --train 30 --valid 5 --test 5
expect 0 "pathfinder" "$cosformer" data pathfinder --out "$work/path" --train 20 --valid 2 --test 2 --preview 1
contains out ".png"
expect 2 "no such size" "$cosformer" data pathfinder --out "$work/path" --size 31
[ "$failures" -eq 0 ] && echo "all commands behave"
exit "$failures"
