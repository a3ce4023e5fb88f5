#!/usr/bin/env bash
# What a newcomer sees first: the main job on real images, beside softmax of the same size. About ten minutes at most on
# two cores; what is there from an earlier time is used again.
set -euo pipefail
cosformer=$1
runs=${2:-runs/demo}
images=/usr/share/datasets/fashion-mnist

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

say "1. Is it right? The operator against its definition in float64, on random shapes of this machine"
"$cosformer" check --cases 40 --max-length 100

say "2. cosFormer and softmax learn Fashion-MNIST as sequences of 196 pixels"
# learn NAME OPTIONS...
learn() {
  echo
  "$cosformer" train --config "$(dirname "$0")/../configs/demo.toml" --out "$runs/$1" "${@:2}"
}
learn cosformer --attention cosformer
learn cosformer_plus --attention cosformer_plus
learn softmax --attention softmax
# The twin of cosformer_plus: as many parameters, the same convolution and gate.
learn softmax_plus --attention softmax --set attention.convolution=5 --set attention.gate=true

say "3. Side by side on the same test images"
"$cosformer" eval "$runs"/cosformer "$runs"/cosformer_plus "$runs"/softmax "$runs"/softmax_plus

say "4. What the best of them says about four test images"
"$cosformer" predict "$runs/cosformer_plus" --input $images/t10k-images-idx3-ubyte.gz --first 4 --top 3 --draw

say "5. The same on longer sequences: time and memory of one attention, linear beside quadratic"
"$cosformer" bench attention --lengths 1024,4096,16384 --causal no --impl chunked,softmax --seconds 0.3 \
  --most-seconds 20

say "6. Writing: what the next token costs after more and more text, with a state and with softmax's growing cache"
"$cosformer" bench decode --contexts 1024,8192,65536 --seconds 0.3

say "Next"
cat << TEXT
  $runs/cosformer/curves.svg                    the curves (also .png, TensorBoard files, metrics.jsonl)
  cosformer train --settings                    every setting; configs/lra/ has the Long Range Arena
  cosformer train --task text_files --data YOURS.tsv     your own texts, images, sequences
  cosformer train --config configs/lm/byte.toml --data BOOK.txt   a language model; then: cosformer generate
  cosformer bench train --help                  steps/s and memory by length and mechanism
  cosformer compare --config configs/compare/quick.toml  every mechanism side by side, with a report
  README.md, docs/method.md                     use it from C++ and Python; why it is exact
TEXT
