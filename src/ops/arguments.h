// The arguments of both operators: checked, named in every error, and reduced to what a device implementation needs.
#pragma once

#include <string>

#include <ATen/ATen.h>

#include "kernels/attention.h"
#include "ops/torch_compat.h"

namespace cosformer::ops {

// As the caller wrote them. Absent tensors are undefined.
struct AttentionRequest {
  at::Tensor q, k, v;
  bool causal = false;
  Optional<double> horizon;
  at::Tensor theta, log_decay;
  std::string feature_map = "relu";
  bool reweight = true;
  std::string normalizer = "sum";
  double eps = 1e-6;
  at::Tensor key_mask, cu_seqlens_q, cu_seqlens_k;
  at::Tensor state_kv, state_z, position;
  bool carries_state = false;  // the streaming operator: all three of the above are required
  const char* op = "cosformer::attention";

  bool packed_on_cpu() const;
};

// θ of a sequence follows from `horizon` unless theta is given.
constexpr double kOwnHorizon = 0.0;  // max(Tq, Tk) of each sequence
// An infinite horizon means θ = 0: no re-weighting.

struct AttentionArguments {
  at::Tensor q, k, v;
  at::Tensor theta, log_decay, key_mask, cu_seqlens_q, cu_seqlens_k;
  at::Tensor state_kv, state_z, position;
  double horizon = kOwnHorizon;
  bool causal = false;
  std::int64_t feature_map = 0;  // kernels::FeatureMap
  std::int64_t normalizer = 0;   // kernels::Normalizer
  double eps = 1e-6;

  bool has_state() const { return state_kv.defined(); }
  bool packed() const { return cu_seqlens_q.defined(); }
  bool normalized() const { return normalizer == static_cast<std::int64_t>(kernels::Normalizer::kSum); }
};

// Throws c10::ValueError naming the argument, what was expected and what came. Contents of device tensors are never
// read: those of lengths, positions and decays are checked for CPU tensors only.
AttentionArguments check_arguments(const AttentionRequest& request);

// The dtype of states and denominators: float64 for float64 inputs, else float32.
at::ScalarType accumulation_type(at::ScalarType type);

}  // namespace cosformer::ops
