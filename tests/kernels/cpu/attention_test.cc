// Every instruction set that this machine runs, against the float64 definition.
#include "kernels/cpu/attention.h"

#include <vector>

#include <gtest/gtest.h>

#include "kernels/case_count.h"
#include "kernels/verify/run_case.h"

namespace cosformer::kernels::cpu {
namespace {

using verify::AttentionCase;
using verify::CaseLimits;

std::vector<const AttentionKernels*> runnable_kernels() {
  std::vector<const AttentionKernels*> sets;
  for (const AttentionKernels* kernels : compiled_kernels()) {
    if (cpu_can_run(kernels->name)) sets.push_back(kernels);
  }
  return sets;
}

void expect_within_bounds(AttentionCase c, const std::vector<int>& thread_counts) {
  c.hand_over_sum = !c.causal && !c.decay && c.seed % 2 == 1;
  const verify::CaseData data = verify::make_data(c);
  const verify::Yardstick yardstick = verify::make_yardstick(c, data);
  for (const AttentionKernels* kernels : runnable_kernels()) {
    for (const int threads : thread_counts) {
      const verify::CaseResult result = verify::run_case(*kernels, c, data, c.dtype, threads);
      for (const verify::PartError& part : verify::compare(c, yardstick, result)) {
        EXPECT_TRUE(part.within()) << kernels->name << ", " << threads << " threads, " << c.describe() << ": "
                                   << part.name << " is off by " << part.error << ", allowed " << part.bound;
      }
    }
  }
}

TEST(CpuAttention, RandomCasesAgreeWithTheDefinition) {
  for (std::uint64_t seed = 0; seed < case_count(120); ++seed) expect_within_bounds(verify::random_case(seed), {1, 2});
}

// One to a few tokens on a carried state: the decode step.
TEST(CpuAttention, ShortRandomCasesAgreeWithTheDefinition) {
  CaseLimits limits;
  limits.max_length = 9;
  for (std::uint64_t seed = 2000; seed < 2000 + case_count(100); ++seed)
    expect_within_bounds(verify::random_case(seed, limits), {1, 2});
}

// Long enough that sequences are split into segments.
TEST(CpuAttention, LongRandomCasesAgreeWithTheDefinition) {
  CaseLimits limits;
  limits.max_length = 900;
  limits.max_dim = 24;
  for (std::uint64_t seed = 1000; seed < 1000 + case_count(16); ++seed)
    expect_within_bounds(verify::random_case(seed, limits), {1, 2, 3});
}

// Many heads and more than 2 MB of results, which are stored past the caches.
TEST(CpuAttention, LargeResultsAgreeWithTheDefinition) {
  AttentionCase c;
  c.heads = 16;
  c.dim = c.value_dim = 64;
  c.q_lengths = c.k_lengths = {36};
  c.theta_per_head = true;
  c.batch = 15;
  expect_within_bounds(c, {1});
  c.causal = false;
  expect_within_bounds(c, {3});
  c.dtype = DType::kBFloat16;
  c.batch = 30;
  expect_within_bounds(c, {3});
}

}  // namespace
}  // namespace cosformer::kernels::cpu
