#!/usr/bin/env bash
# The CPU kernels' tests as 64-bit ARM code under qemu, which is far slower than a processor: the same tests on a tenth
# of the random cases. Those of the oracle alone, which has no code per processor, are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset arm > build-arm.log 2>&1 || { cat build-arm.log; exit 1; }
rm -f build-arm.log
cmake --build --preset arm --target kernels_cpu_test kernels_reference_test -j "$(nproc)"
echo "$(aarch64-linux-gnu-g++ --version | sed 1q); $(qemu-aarch64 --version | sed 1q)"
readelf -h build-arm/tests/kernels_cpu_test | grep Machine:
export COSFORMER_TEST_CASES=${COSFORMER_TEST_CASES:-10}
ctest --test-dir build-arm --output-on-failure --no-tests=error -j "$(nproc)" -R '^(Cpu|Dtype|ShortConvolution)'
