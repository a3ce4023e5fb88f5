#include <ATen/ATen.h>

#include "base/error.h"
#include "cosformer/nn.h"
#include "kernels/attention.h"

namespace cosformer::nn {
namespace {

CosformerAttentionOptions checked(CosformerAttentionOptions o) {
  if (o.embed_dim <= 0 || o.num_heads <= 0 || o.embed_dim % o.num_heads != 0) {
    throw UserError("CosformerAttention: embed_dim must be a positive multiple of num_heads; got embed_dim " +
                    std::to_string(o.embed_dim) + " and num_heads " + std::to_string(o.num_heads));
  }
  if (o.embed_dim / o.num_heads > kernels::kMaxHeadDim) {
    throw UserError("CosformerAttention: embed_dim / num_heads must be at most " +
                    std::to_string(kernels::kMaxHeadDim) + "; got " + std::to_string(o.embed_dim / o.num_heads));
  }
  return o;
}

}  // namespace

CosformerAttentionImpl::CosformerAttentionImpl(CosformerAttentionOptions o) : options(checked(std::move(o))) {
  const auto linear = [this](std::int64_t in) {
    return torch::nn::LinearOptions(in, options.embed_dim).bias(options.bias);
  };
  k_proj = register_module("k_proj", torch::nn::Linear(linear(options.kdim.value_or(options.embed_dim))));
  v_proj = register_module("v_proj", torch::nn::Linear(linear(options.vdim.value_or(options.embed_dim))));
  q_proj = register_module("q_proj", torch::nn::Linear(linear(options.embed_dim)));
  if (options.out_projection) out_proj = register_module("out_proj", torch::nn::Linear(linear(options.embed_dim)));
}

at::Tensor CosformerAttentionImpl::split_heads(const at::Tensor& x) const {
  TORCH_CHECK_VALUE(x.dim() == 3, "CosformerAttention: inputs must be [batch, time, width]; got ", x.sizes());
  return x.view({x.size(0), x.size(1), options.num_heads, options.embed_dim / options.num_heads});
}

at::Tensor CosformerAttentionImpl::merge_heads(const at::Tensor& x) {
  const at::Tensor merged = x.reshape({x.size(0), x.size(1), options.embed_dim});
  return options.out_projection ? out_proj(merged) : merged;
}

at::Tensor CosformerAttentionImpl::forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                           const at::Tensor& key_mask) {
  AttentionOptions o;
  o.causal = options.causal;
  o.horizon = options.horizon;
  o.feature_map = options.feature_map;
  o.eps = options.eps;
  o.key_mask = key_mask;
  return merge_heads(attention(split_heads(q_proj(query)), split_heads(k_proj(key)), split_heads(v_proj(value)), o));
}

at::Tensor CosformerAttentionImpl::stream(const at::Tensor& x, AttentionState& state) {
  if (!options.causal || !options.horizon.has_value()) {
    throw UserError(
        "CosformerAttention: stream() needs options.causal and options.horizon, the most tokens it will see");
  }
  StreamOptions o;
  o.horizon = *options.horizon;
  o.feature_map = options.feature_map;
  o.eps = options.eps;
  return merge_heads(
      attention_with_state(split_heads(q_proj(x)), split_heads(k_proj(x)), split_heads(v_proj(x)), state, o));
}

AttentionState CosformerAttentionImpl::empty_state(std::int64_t batch) const {
  const std::int64_t dim = options.embed_dim / options.num_heads;
  return AttentionState::empty(batch, options.num_heads, dim, dim, q_proj->weight.options());
}

}  // namespace cosformer::nn
