// cosFormer attention: exact, with a cost that grows linearly with length.
//
//     w_ij = φ(q_i)·φ(k_j) · cos(θ(i − j)) · γ^|i−j|,   o_i = Σ_j w_ij v_j / max(Σ_j w_ij, eps)
//
// with φ = ReLU, θ = π/2M and γ = 1 in the published method. Layout [batch, time, heads, dim]; the last dimension is
// contiguous, other strides are free. float32, bfloat16, float16, and float64 on the CPU. Both functions are
// differentiable (once), and reachable from Python as torch.ops.cosformer.* after torch.ops.load_library.
// What cannot work throws a std::runtime_error of one line: the argument, what was expected and what came. (In Python
// it is a ValueError.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

namespace cosformer {

struct AttentionOptions {
  bool causal = false;               // query i sees keys j ≤ i; otherwise all keys
  std::optional<double> horizon;     // M; none: max(Tq, Tk) of each sequence, the published rule
  at::Tensor theta;                  // [heads] float32, angle per token of each head, in place of π/2M
  at::Tensor log_decay;              // [heads] float32 ≤ 0, ln γ of each head; differentiable
  std::string feature_map = "relu";  // relu, elu1, leaky_relu, silu, identity
  bool reweight = true;              // false: θ = 0, plain linear attention
  std::string normalizer = "sum";    // sum, none
  double eps = 1e-6;                 // lower bound of the divisor
  at::Tensor key_mask;               // [batch, Tk] bool, true = present
  at::Tensor cu_seqlens_q;           // [sequences + 1] int32/int64: sequences packed end to end in a batch of one
  at::Tensor cu_seqlens_k;
};

// q [B, Tq, H, D], k [B, Tk, H, D], v [B, Tk, H, Dv] → [B, Tq, H, Dv]
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionOptions& options = {});

// All that a causal model has to remember of the tokens behind it. Its size does not depend on their number.
struct AttentionState {
  at::Tensor kv;        // [B, H, 2, D, Dv] float32 (float64 for float64 inputs); index 0 cosine part, 1 sine part
  at::Tensor z;         // [B, H, 2, D]
  at::Tensor position;  // [B] int64, tokens consumed so far

  static AttentionState empty(std::int64_t batch, std::int64_t heads, std::int64_t dim, std::int64_t value_dim,
                              const at::TensorOptions& options = {});
};

struct StreamOptions {
  double horizon = 0;  // M, required: the stream may reach M tokens (any length where theta is given or reweight off)
  at::Tensor theta;
  at::Tensor log_decay;
  std::string feature_map = "relu";
  bool reweight = true;
  std::string normalizer = "sum";
  double eps = 1e-6;
};

// Causal attention of the next T tokens of each sequence, continuing from `state`, which is advanced by them.
at::Tensor attention_with_state(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, AttentionState& state,
                                const StreamOptions& options);

}  // namespace cosformer
