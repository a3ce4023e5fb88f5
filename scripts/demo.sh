#!/usr/bin/env bash
# What a newcomer sees first: what is here, that it is right, and how it grows with length.
set -euo pipefail
cosformer=$1

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

say "1. What this build and this machine offer"
"$cosformer" info

say "2. Is it right? The operator against its definition in float64, on random shapes"
"$cosformer" check --cases 60 --max-length 100

say "3. Time and memory as the length grows: exact linear attention beside softmax"
"$cosformer" bench attention --lengths 256,1024,4096,16384 --causal yes --impl chunked,softmax --seconds 0.5 \
  --most-seconds 30

say "Next"
cat << 'TEXT'
  cosformer bench attention --help     other shapes, dtypes, directions, forms
  README.md                            use it from C++, Python and CMake
  docs/method.md                       why it is exact
TEXT
