// cosFormer attention as a torch module: projections, heads, the operator.
//
// Parameters are named and shaped as in the implementation that the paper's authors released (q_proj, k_proj, v_proj,
// out_proj, each with weight and bias), so its weights load by name. What cannot work throws a std::runtime_error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "cosformer/attention.h"

namespace cosformer::nn {

struct CosformerAttentionOptions {
  std::int64_t embed_dim = 0;
  std::int64_t num_heads = 1;
  std::optional<std::int64_t> kdim, vdim;  // widths of key and value inputs; none: embed_dim
  bool bias = true;
  bool out_projection = true;
  bool causal = false;
  std::optional<double> horizon;  // M in tokens; none: the longer of the two inputs, each call anew. Streams need one
  std::string feature_map = "relu";
  double eps = 1e-6;
};

class CosformerAttentionImpl : public torch::nn::Module {
 public:
  explicit CosformerAttentionImpl(CosformerAttentionOptions options);

  // query [batch, Tq, embed_dim], key [batch, Tk, kdim], value [batch, Tk, vdim], key_mask [batch, Tk] bool (true =
  // present) or undefined → [batch, Tq, embed_dim]
  at::Tensor forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const at::Tensor& key_mask = {});

  // Self-attention.
  at::Tensor forward(const at::Tensor& x) { return forward(x, x, x); }

  // The next tokens of causal self-attention, continuing from `state`, which is advanced. Needs a horizon.
  at::Tensor stream(const at::Tensor& x, AttentionState& state);
  AttentionState empty_state(std::int64_t batch) const;

  const CosformerAttentionOptions options;
  torch::nn::Linear q_proj{nullptr}, k_proj{nullptr}, v_proj{nullptr}, out_proj{nullptr};

 private:
  at::Tensor split_heads(const at::Tensor& x) const;
  at::Tensor merge_heads(const at::Tensor& x);
};

TORCH_MODULE(CosformerAttention);

}  // namespace cosformer::nn
