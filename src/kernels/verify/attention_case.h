// A case of the operator: its shape, its options and its data, drawn from one seed.
//
// The same cases serve the tests of every implementation and the self-test that users run.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention.h"

namespace cosformer::kernels::verify {

// How a [batch, time, heads, width] tensor lies in memory, to show that strides are honoured.
enum class Layout : std::uint8_t { kTimeMajor, kHeadMajor, kGapped };

struct AttentionCase {
  std::uint64_t seed = 0;
  DType dtype = DType::kFloat32;
  std::int64_t batch = 1, heads = 1, dim = 8, value_dim = 8;
  std::vector<std::int64_t> q_lengths{16}, k_lengths{16};  // one of each for a dense batch, one per packed sequence
  bool packed = false;
  bool causal = true;
  FeatureMap feature_map = FeatureMap::kRelu;
  Normalizer normalizer = Normalizer::kSum;
  double eps = 1e-6;
  bool reweight = true;
  double horizon = 0;  // 0: the published rule, max(Tq, Tk) of each sequence
  bool theta_per_head = false;
  bool decay = false;
  bool key_mask = false;
  bool carry_state = false;  // causal, Tq = Tk, starting at `position` on a random state
  std::int64_t position = 0;
  bool hand_over_sum = false;  // bidirectional without decay: the forward pass's state goes to the backward pass
  double scale = 1;            // of q and k
  Layout layout = Layout::kTimeMajor;

  std::int64_t q_total() const;
  std::int64_t k_total() const;
  std::string describe() const;
};

// Which cases to draw. Everything the operator offers is in the mix.
struct CaseLimits {
  std::vector<DType> dtypes{DType::kFloat64, DType::kFloat32, DType::kBFloat16, DType::kFloat16};
  std::int64_t max_length = 160;
  std::int64_t max_dim = 256;
};

AttentionCase random_case(std::uint64_t seed, const CaseLimits& limits = {});

// Dense [batch, time, heads, width] arrays of numbers that the case's dtype holds exactly, so that a float64 oracle and
// the implementation under test see the same inputs.
struct CaseData {
  std::vector<double> q, k, v, dout;
  std::vector<double> theta, log_decay;  // [heads] or empty; values that float32 holds
  std::vector<bool> key_mask;            // [batch, time] or empty
  std::vector<double> state_kv, state_z, d_state_kv, d_state_z;
  std::vector<Sequence> sequences;
};

CaseData make_data(const AttentionCase& c);

}  // namespace cosformer::kernels::verify
