// What holds to the last bit, for every instruction set that this machine runs.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/attention.h"
#include "kernels/verify/run_case.h"

namespace cosformer::kernels::cpu {
namespace {

using verify::AttentionCase;
using verify::CaseData;
using verify::CaseResult;

constexpr std::int64_t kTokens = 150;

AttentionCase causal_case(DType dtype) {
  AttentionCase c;
  c.seed = 5;
  c.dtype = dtype;
  c.heads = 2;
  c.dim = c.value_dim = 24;
  c.q_lengths = c.k_lengths = {kTokens};
  c.decay = true;
  return c;
}

template <class Check>
void with_every_set(Check check) {
  for (const AttentionKernels* kernels : compiled_kernels()) {
    if (!cpu_can_run(kernels->name)) continue;
    for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      SCOPED_TRACE(std::string(kernels->name) + " " + name_of(dtype));
      check(*kernels, dtype);
    }
  }
}

TEST(CpuProperties, ChangingATokenLeavesThePastAsItWas) {
  with_every_set([](const AttentionKernels& kernels, DType dtype) {
    const AttentionCase c = causal_case(dtype);
    const CaseData data = verify::make_data(c);
    const CaseResult before = verify::run_case(kernels, c, data, dtype);
    const std::size_t row = static_cast<std::size_t>(c.heads * c.dim);
    for (const std::size_t token : {1UL, 31UL, 40UL, 64UL, 149UL}) {
      CaseData changed = data;
      for (std::size_t e = 0; e < row; ++e) {
        changed.q[token * row + e] = 3;
        changed.k[token * row + e] = 5;
        changed.v[token * row + e] = -7;
      }
      const CaseResult after = verify::run_case(kernels, c, changed, dtype);
      EXPECT_EQ(std::memcmp(before.out.data(), after.out.data(), token * row * sizeof(double)), 0) << token;
      EXPECT_NE(std::memcmp(before.out.data() + token * row, after.out.data() + token * row, row * sizeof(double)), 0);
    }
  });
}

// An infinity or a NaN in a later token must not reach back either, not even as 0·inf inside a chunk.
TEST(CpuProperties, WhatIsNotFiniteStaysOutOfThePast) {
  with_every_set([](const AttentionKernels& kernels, DType dtype) {
    for (const bool carry_state : {false, true}) {
      AttentionCase c = causal_case(dtype);
      c.carry_state = carry_state;
      const std::size_t last = carry_state ? 5 : kTokens - 1;  // few tokens on a state: the decode step
      if (carry_state) {
        c.q_lengths = c.k_lengths = {static_cast<std::int64_t>(last) + 1};
        c.dim = c.value_dim = 32;
        c.horizon = 1000;
      }
      const CaseData data = verify::make_data(c);
      const CaseResult before = verify::run_case(kernels, c, data, dtype);
      const std::size_t row = static_cast<std::size_t>(c.heads * c.dim);
      for (const std::size_t token : {std::size_t{1}, std::size_t{4}, std::size_t{40}, last}) {
        if (token > last) continue;
        for (const double poison : {std::numeric_limits<double>::infinity(), std::nan("")}) {
          CaseData changed = data;
          for (std::size_t e = 0; e < row; ++e) {
            changed.k[token * row + e] = poison;
            changed.v[token * row + e] = poison;
          }
          const CaseResult after = verify::run_case(kernels, c, changed, dtype);
          EXPECT_EQ(std::memcmp(before.out.data(), after.out.data(), token * row * sizeof(double)), 0) << token;
          EXPECT_FALSE(std::isfinite(after.out[token * row])) << token;
        }
      }
    }
  });
}

TEST(CpuProperties, SameThreadsSameBits) {
  with_every_set([](const AttentionKernels& kernels, DType dtype) {
    AttentionCase c = causal_case(dtype);
    c.heads = 1;
    c.q_lengths = c.k_lengths = {600};
    for (const bool causal : {true, false}) {
      c.causal = causal;
      const CaseData data = verify::make_data(c);
      const CaseResult first = verify::run_case(kernels, c, data, dtype, 3);
      const CaseResult second = verify::run_case(kernels, c, data, dtype, 3);
      for (const verify::NamedPart& part : verify::result_parts()) {
        const std::vector<double>& x = first.*part.part;
        if (x.empty()) continue;
        EXPECT_EQ(std::memcmp(x.data(), (second.*part.part).data(), x.size() * sizeof(double)), 0) << part.name;
      }
    }
  });
}

// A state that is updated where it lies becomes what it would have become elsewhere.
TEST(CpuProperties, StateInPlaceIsTheStateElsewhere) {
  constexpr std::int64_t kHeads = 2, kDim = 20;
  for (const std::int64_t value_dim : {32, 7}) {
    for (const std::int64_t length : {1, 3, 8, 100}) {
      const auto numbers = [](std::int64_t count, std::int64_t step) {
        std::vector<float> values;
        for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * step % 101) / 101);
        return values;
      };
      const std::vector<float> q = numbers(length * kHeads * kDim, 7919), k = numbers(length * kHeads * kDim, 104729);
      const std::vector<float> v = numbers(length * kHeads * value_dim, 1299709);
      const std::vector<float> kv = numbers(kHeads * 2 * kDim * value_dim, 31), z = numbers(kHeads * 2 * kDim, 37);
      const std::vector<double> log_decay{-0.01, -0.2};
      const Sequence sequence{.q_length = length, .k_length = length, .position = 1000, .theta = 1e-3};
      for (const AttentionKernels* kernels : compiled_kernels()) {
        if (!cpu_can_run(kernels->name)) continue;
        std::vector<float> out(v.size()), sums(static_cast<std::size_t>(length * kHeads));
        AttentionProblem problem;
        problem.heads = kHeads;
        problem.dim = kDim;
        problem.value_dim = value_dim;
        problem.causal = true;
        problem.sequences = &sequence;
        problem.sequence_count = 1;
        problem.log_decay = log_decay.data();
        problem.q = {q.data(), 0, kHeads * kDim, kDim};
        problem.k = {k.data(), 0, kHeads * kDim, kDim};
        problem.v = {v.data(), 0, kHeads * value_dim, value_dim};
        problem.out = {out.data(), 0, kHeads * value_dim, value_dim};
        problem.denominator = {sums.data(), 0, kHeads, 1};
        const auto run = [&](const std::vector<float>& kv_in, const std::vector<float>& z_in,
                             std::vector<float>& kv_out, std::vector<float>& z_out) {
          problem.state_kv_in = kv_in.data();
          problem.state_z_in = z_in.data();
          problem.state_kv_out = kv_out.data();
          problem.state_z_out = z_out.data();
          const Schedule schedule = kernels->plan_fwd(problem, 2);
          verify::run_phases(schedule, 2, [&](const Work& work) { kernels->run_fwd(problem, schedule, work); });
          return out;
        };
        std::vector<float> kv_elsewhere(kv.size()), z_elsewhere(z.size()), kv_here = kv, z_here = z;
        const std::vector<float> out_elsewhere = run(kv, z, kv_elsewhere, z_elsewhere);
        EXPECT_EQ(run(kv_here, z_here, kv_here, z_here), out_elsewhere) << kernels->name;
        EXPECT_EQ(kv_here, kv_elsewhere) << kernels->name;
        EXPECT_EQ(z_here, z_elsewhere) << kernels->name;
        EXPECT_NE(kv_here, kv);
      }
    }
  }
}

}  // namespace
}  // namespace cosformer::kernels::cpu
