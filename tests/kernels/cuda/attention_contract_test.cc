// What holds of the kernels' face, whatever they compute.
#include <gtest/gtest.h>

#include "kernels/cuda/attention.h"

namespace cosformer::kernels::cuda::testing {
namespace {

TEST(AttentionCudaContract, RefusesWhatItCannotDo) {
  Problem p;
  p.heads = p.sequences = 1;
  p.q_length = p.k_length = 4;
  p.dim = p.value_dim = 257;
  const auto start = [&] { return attention_fwd(p, choose(p, nullptr, this_device()), nullptr, 0, nullptr); };
  EXPECT_EQ(start(), cudaErrorInvalidValue);
  p.dim = p.value_dim = 16;
  p.dtype = DType::kFloat64;
  EXPECT_EQ(start(), cudaErrorInvalidValue);
  p.dtype = DType::kFloat32;  // normalised, but no place for the denominators
  EXPECT_EQ(start(), cudaErrorInvalidValue);
}

// The choice for an H200 that is made where there is none goes by what the device itself says.
TEST(AttentionCudaContract, AnH200IsAsItIsDescribed) {
  const Device device = this_device(), described{};
  if (device.capability != described.capability || device.multiprocessors != described.multiprocessors ||
      !device.hopper_kernels) {
    GTEST_SKIP() << "another device";
  }
  EXPECT_TRUE(device.tensor_maps);
  // What is said to fit must fit. An emulated device, which counts no registers, holds more.
  EXPECT_GE(device.narrow_blocks, described.narrow_blocks);
  EXPECT_GE(device.narrow_blocks_keeping, described.narrow_blocks_keeping);
}

}  // namespace
}  // namespace cosformer::kernels::cuda::testing
