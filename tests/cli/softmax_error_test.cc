// What softmax is judged by: right results of every dtype pass at every length, wrong ones do not.
#include "cli/bench/softmax_error.h"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cosformer::cli {
namespace {

using kernels::DType;

struct Case {
  at::Tensor q, k, v, out;  // [T, D] in float64

  SoftmaxError judged(bool causal, DType dtype) const { return softmax_error(q, k, v, out, causal, dtype); }
};

Case computed_by_torch(std::int64_t time, std::int64_t dim, bool causal, at::ScalarType type, std::uint64_t seed) {
  at::manual_seed(seed);
  const auto draw = [&] { return at::randn({time, dim}).to(type); };
  const at::Tensor q = draw(), k = draw(), v = draw();
  at::Tensor scores = at::matmul(q, k.t()) * (1 / std::sqrt(static_cast<double>(dim)));
  if (causal) {
    scores = scores.masked_fill(at::ones({time, time}, at::kBool).triu(1), -std::numeric_limits<double>::infinity());
  }
  const at::Tensor out = at::matmul(at::softmax(scores, -1), v);
  return {q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble), out.to(at::kDouble)};
}

TEST(SoftmaxError, TorchsOwnIsWithinTheBoundAtEveryLength) {
  const std::pair<DType, at::ScalarType> types[] = {
      {DType::kFloat64, at::kDouble}, {DType::kFloat32, at::kFloat}, {DType::kBFloat16, at::kBFloat16}};
  for (const auto& [dtype, type] : types) {
    for (const std::int64_t time : {1, 2, 64, 100, 128, 300}) {
      for (const bool causal : {false, true}) {
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
          const SoftmaxError e = computed_by_torch(time, 64, causal, type, seed).judged(causal, dtype);
          EXPECT_LE(e.error, e.bound) << kernels::name_of(dtype) << " " << time << " tokens, causal " << causal
                                      << ", seed " << seed;
        }
      }
    }
  }
}

TEST(SoftmaxError, WhatIsWrongIsBeyondTheBound) {
  Case wrong = computed_by_torch(128, 64, false, at::kFloat, 1);
  const double bound = wrong.judged(false, DType::kFloat32).bound;
  EXPECT_LT(bound, 3e-6);
  wrong.out[77][3] += 2 * bound;
  EXPECT_GT(wrong.judged(false, DType::kFloat32).error, bound);
  const Case uncausal = computed_by_torch(128, 64, false, at::kFloat, 1);
  EXPECT_GT(uncausal.judged(true, DType::kFloat32).error, 1e-3);
  wrong.out[5][5] = std::nan("");
  const SoftmaxError none = wrong.judged(false, DType::kFloat32);
  EXPECT_FALSE(none.error <= none.bound);
}

}  // namespace
}  // namespace cosformer::cli
