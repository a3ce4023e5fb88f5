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

record() { timeout 240 bash bench/record.sh "$@"; }
run=$build/bin/cosformer
# Test programs spend their time in the oracle, on one core: spread over all.
record cuda/kernel-tests bash bench/shards.sh $build/bin/attention_cuda_test
record cuda/operator-tests python3 -X faulthandler tests/python/load_library_test.py $build/lib/libcosformer.so
record cuda/embedding-check python3 tests/python/embedding_test.py $build/lib/libcosformer.so
record cuda/check $run check --device cuda --cases 300
shape=(--device cuda --dtypes bfloat16 --seconds 0.2 --impl chunked)
record cuda/attention-1k $run bench attention "${shape[@]}" --batch 64 --lengths 1024 --heads 16 --decay both
record cuda/attention-64k $run bench attention "${shape[@]}" --batch 1 --lengths 65536 --heads 16 --pass fwd,fwd+bwd
record cuda/peers-1k $run bench peers --device cuda --dtype bfloat16 --batch 64 --lengths 1024 --heads 16 --seconds 0.2
record cuda/peers-16k $run bench peers --device cuda --dtype bfloat16 --batch 4 --lengths 16384 --heads 16 --seconds 0.2
record cuda/kernel-bench $build/bin/attention_cuda_test bench
record cuda/kernel-profile python3 bench/kernel_profile.py $build/bin/attention_cuda_test

# Memory errors, uninitialised reads and races, on few and short cases; bfloat16 alone has kernels for segments.
some='*Random*:*Wide*:*Long*:*Absent*:*Full*:*Segments*:*Decode*:*Embedding*:*LargeSums*-*Segments/float*'
for tool in memcheck initcheck racecheck; do
  cases=8 wide=12 again=2
  [ $tool != racecheck ] || cases=3 wide=3 again=1  # the slowest
  record cuda/sanitizer-$tool env COSFORMER_CUDA_CASES=$cases COSFORMER_CUDA_LONG=1 COSFORMER_CUDA_WIDE=$wide \
    COSFORMER_CUDA_AGAIN=$again COSFORMER_CUDA_LONGEST=700 COSFORMER_CUDA_NUMBERS=50000 GTEST_FILTER="$some" \
    bash bench/shards.sh compute-sanitizer --tool $tool --error-exitcode 1 $build/bin/attention_cuda_test
done

# The code for sm_80 on whatever is here, translated by the compiler: the driver would do so kernel by kernel, on one
# core, whenever the tests run.
here=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
cmake -S . -B $build-80 -G Ninja -DCMAKE_BUILD_TYPE=Release -DCOSFORMER_TORCH=OFF -DCOSFORMER_CUDA=ON \
  -DCOSFORMER_INSTRUCTION_SETS=baseline -DCOSFORMER_CUDA_ARCHITECTURES=OFF -DCMAKE_CUDA_ARCHITECTURES=OFF \
  "-DCMAKE_CUDA_FLAGS=-gencode arch=compute_80,code=sm_$here" > /dev/null || exit 1
cmake --build $build-80 -j "$(nproc)" --target attention_cuda_test > $build-80/build.log 2>&1 ||
  { tail -40 $build-80/build.log; exit 1; }
record cuda/kernel-tests-sm80 bash bench/shards.sh $build-80/bin/attention_cuda_test
