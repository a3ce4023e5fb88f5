#!/usr/bin/env bash
# On a host with a GPU and a CUDA libtorch (found through python3): builds, and writes logs under bench/results/cuda/.
#   bench/gpu.sh [tests] [speed] [memcheck] [initcheck] [racecheck] [sm80]     all of them where none is named
# COSFORMER_ARCHITECTURE: the GPU's, 90-real where it is not set.
# COSFORMER_BUILT: not empty where build-cuda has what the parts need already.
# COSFORMER_LIMIT: seconds that one measurement may take, 240 where it is not set.
set -uo pipefail
cd "$(dirname "$0")/.."
build=build-cuda
run=$build/bin/cosformer library=$build/lib/libcosformer.so
kernels=$build/bin/attention_cuda_test benches=$build/bin/kernels_cuda_bench
limit=${COSFORMER_LIMIT:-240}
record() { timeout "$limit" bash bench/record.sh "$@"; }

# configure_and_build FOLDER TARGET OPTIONS...
configure_and_build() {
  local folder=$1 target=$2
  shift 2
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release "$@" > /dev/null || exit 1
  cmake --build "$folder" -j "$(nproc)" --target "$target" > "$folder/build.log" 2>&1 ||
    { tail -40 "$folder/build.log"; exit 1; }
}

tests() {
  # Test programs spend their time in the oracle, on one core: spread over all.
  record cuda/kernel-tests bash bench/shards.sh $kernels
  record cuda/operator-tests python3 -X faulthandler tests/python/load_library_test.py $library
  record cuda/embedding-check python3 tests/python/embedding_test.py $library
  record cuda/check $run check --device cuda --cases 300
}

speed() {
  local shape=(--device cuda --dtypes bfloat16 --seconds 0.2 --impl chunked)
  record cuda/attention-1k $run bench attention "${shape[@]}" --batch 64 --lengths 1024 --heads 16 --decay both
  record cuda/attention-64k $run bench attention "${shape[@]}" --batch 1 --lengths 65536 --heads 16 --pass fwd,fwd+bwd
  local peers=(--device cuda --dtype bfloat16 --heads 16 --seconds 0.2)
  record cuda/peers-1k $run bench peers "${peers[@]}" --batch 64 --lengths 1024
  record cuda/peers-16k $run bench peers "${peers[@]}" --batch 4 --lengths 16384
  record cuda/kernel-bench $benches bench
  record cuda/kernel-profile python3 bench/kernel_profile.py $benches
}

sanitize() {
  record "cuda/sanitizer-$1" env COSFORMER_LIMIT=$((limit - 10)) bash bench/sanitize.sh "$1" $kernels
}

# The code for sm_80 on whatever is here, translated by the compiler: the driver would do so kernel by kernel, on one
# core, whenever the tests run.
sm80() {
  local here
  here=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
  configure_and_build $build-80 attention_cuda_test -DCOSFORMER_TORCH=OFF -DCOSFORMER_CUDA=ON \
    -DCOSFORMER_INSTRUCTION_SETS=baseline -DCOSFORMER_CUDA_ARCHITECTURES=OFF -DCMAKE_CUDA_ARCHITECTURES=OFF \
    "-DCMAKE_CUDA_FLAGS=-gencode arch=compute_80,code=sm_$here"
  record cuda/kernel-tests-sm80 bash bench/shards.sh $build-80/bin/attention_cuda_test
}

parts=("$@")
[ $# -gt 0 ] || parts=(tests speed memcheck initcheck racecheck sm80)
target=attention_cuda_test  # the kernels need no torch
for part in "${parts[@]}"; do
  case $part in
    tests | speed) target=all ;;
    memcheck | initcheck | racecheck | sm80) ;;
    *)
      echo "gpu.sh: there is no part '$part'; there are tests, speed, memcheck, initcheck, racecheck and sm80" >&2
      exit 2
      ;;
  esac
done
if [ -z "${COSFORMER_BUILT:-}" ]; then
  prefix=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')
  configure_and_build $build $target -DCMAKE_PREFIX_PATH="$prefix" \
    -DCOSFORMER_CUDA_ARCHITECTURES="${COSFORMER_ARCHITECTURE:-90-real}"
fi
for part in "${parts[@]}"; do
  case $part in
    *check) sanitize "$part" ;;
    *) $part ;;
  esac
done
