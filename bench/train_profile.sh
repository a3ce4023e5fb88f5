#!/usr/bin/env bash
# Where the time of a training step goes on a GPU: its kernels by Nsight Compute, summed up by kind.
#   bash bench/train_profile.sh PROGRAM [cosformer train's options]
# Launches are timed one by one, without a graph: times of kernels, not of what lies between them.
set -euo pipefail
program=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ncu --clock-control none --metrics gpu__time_duration.sum --launch-skip 2500 --launch-count 1500 --csv \
  --log-file "$folder/kernels.csv" "$program" train "$@" --out "$folder/run" --set train.graph=false --steps 30 \
  > "$folder/train.txt" 2>&1 || { tail -5 "$folder/train.txt"; exit 1; }
python3 - "$folder/kernels.csv" <<'PY'
import collections
import csv
import sys

KINDS = [  # the first that fits
    ("matrix products", ("nvjet", "gemm", "cutlass", "splitKreduce")),
    ("softmax attention", ("cudnn", "flash", "fmha")),
    ("cosformer attention", ("warpgroup", "sweep", "state_", "decay_", "decode")),
    ("norms, ours", ("normalize", "differentiate", "sum_parts")),
    ("norms, torch's", ("layer_norm", "GammaBeta")),
    ("convolution, ours", ("convolve", "weight_gradient")),
    ("optimiser", ("Adam", "multi_tensor")),
    ("sums over rows (biases, pooling)", ("reduce_kernel",)),
    ("embeddings", ("gather", "embedding", "radix", "unique", "index")),
    ("copies and casts", ("copy",)),
    ("zeros", ("FillFunctor",)),
]
rows = [row for row in csv.reader(open(sys.argv[1])) if len(row) > 10]
name, value, unit = (rows[0].index(title) for title in ("Kernel Name", "Metric Value", "Metric Unit"))
times, counts = collections.Counter(), collections.Counter()
for row in rows[1:]:
    kernel = row[name]
    kind = next((kind for kind, marks in KINDS if any(mark in kernel for mark in marks)), "elementwise, the rest")
    scale = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0}[row[unit]]
    times[kind] += float(row[value].replace(",", "")) * scale
    counts[kind] += 1
total = sum(times.values())
print(f"{len(rows) - 1} launches, {total / 1e3:.2f} ms")
print(f"{'kind':34}{'of the time':>12}{'launches':>10}{'us each':>9}")
for kind, time in times.most_common():
    print(f"{kind:34}{100 * time / total:11.1f}%{counts[kind]:10}{time / counts[kind]:9.1f}")
PY
