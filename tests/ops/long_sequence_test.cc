// 131,072 tokens in a few hundred megabytes, forward and backward.
#include <fstream>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "cosformer/attention.h"

namespace cosformer {
namespace {

// The most memory this process has ever held, in bytes.
double peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) * 1024;
  }
  return 0;
}

TEST(LongSequence, MemoryGrowsWithTheInputsOnly) {
  for (const bool causal : {true, false}) {
    const auto q = at::randn({1, 131'072, 1, 64}).requires_grad_();
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak is counted anew from here
    const double before = peak_memory();
    ASSERT_GT(before, 0);
    const auto out = attention(q, q, q, {.causal = causal});
    const auto dq = torch::autograd::grad({out.sum()}, {q})[0];
    EXPECT_TRUE(dq.isfinite().all().item<bool>());
    const double tensor = 131'072 * 64 * 4;
    EXPECT_LT(peak_memory() - before, 9 * tensor) << "outputs, three gradients and their sums are seven tensors";
  }
}

}  // namespace
}  // namespace cosformer
