#!/usr/bin/env bash
# On a host with a GPU and a CUDA libtorch (found through python3): builds, tests and measures; logs under
# bench/results/cuda/. Pass the GPU's architecture, 90-real by default.
set -uo pipefail
cd "$(dirname "$0")/.."
build=build-cuda
prefix=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
  -DCOSFORMER_CUDA_ARCHITECTURES="${1:-90-real}" > /dev/null || exit 1
cmake --build $build -j "$(nproc)" > $build/build.log 2>&1 || { tail -40 $build/build.log; exit 1; }

record() { timeout 150 bash bench/record.sh "$@"; }
run=$build/bin/cosformer
record cuda/kernel-tests $build/bin/attention_cuda_test --gtest_brief=1
record cuda/check $run check --device cuda --cases 300
shape=(--device cuda --dtypes bfloat16 --seconds 0.2 --impl chunked)
record cuda/attention-1k $run bench attention "${shape[@]}" --batch 64 --lengths 1024 --heads 16 --decay both
record cuda/attention-64k $run bench attention "${shape[@]}" --batch 1 --lengths 65536 --heads 16 --pass fwd,fwd+bwd
record cuda/peers-1k $run bench peers --device cuda --dtype bfloat16 --batch 64 --lengths 1024 --heads 16 --seconds 0.2
record cuda/peers-16k $run bench peers --device cuda --dtype bfloat16 --batch 4 --lengths 16384 --heads 16 --seconds 0.2
record cuda/kernel-bench $build/bin/attention_cuda_test bench
