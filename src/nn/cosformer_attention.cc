#include <utility>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "cosformer/nn.h"
#include "kernels/attention.h"
#include "nn/autocast.h"
#include "ops/plain_errors.h"

namespace cosformer::nn {
namespace {

CosformerAttentionOptions checked(CosformerAttentionOptions o) {
  if (o.embed_dim <= 0 || o.num_heads <= 0 || o.embed_dim % o.num_heads != 0) {
    throw UserError(fmt::format(
        "CosformerAttention: embed_dim must be a positive multiple of num_heads; got embed_dim {} and num_heads {}",
        o.embed_dim, o.num_heads));
  }
  if (o.embed_dim / o.num_heads > kernels::kMaxHeadDim) {
    throw UserError(fmt::format("CosformerAttention: embed_dim / num_heads must be at most {}; got {}",
                                kernels::kMaxHeadDim, o.embed_dim / o.num_heads));
  }
  for (const auto& [name, width] : {std::pair("kdim", o.kdim), std::pair("vdim", o.vdim)}) {
    if (width.has_value() && *width <= 0) {
      throw UserError(fmt::format("CosformerAttention: {} must be at least 1; got {}", name, *width));
    }
  }
  return o;
}

// Before the projection, which would say in its own words what does not fit.
void check_input(const char* name, const at::Tensor& x, const at::Tensor& weight) {
  const std::int64_t width = weight.size(1);
  TORCH_CHECK_VALUE(x.defined(), "CosformerAttention: argument '", name, "' must be a tensor [batch, time, ", width,
                    "]; got nothing");
  TORCH_CHECK_VALUE(x.layout() == at::kStrided, "CosformerAttention: argument '", name,
                    "' must be a dense tensor; got ", x.layout());
  TORCH_CHECK_VALUE(x.dim() == 3 && x.size(2) == width, "CosformerAttention: argument '", name,
                    "' must be [batch, time, ", width, "]; got ", x.sizes());
  TORCH_CHECK_VALUE(x.device() == weight.device(), "CosformerAttention: argument '", name,
                    "' must be on the module's device ", weight.device(), "; got ", x.device());
  TORCH_CHECK_VALUE(x.scalar_type() == weight.scalar_type() || is_autocast(x), "CosformerAttention: argument '", name,
                    "' must be of the module's dtype ", weight.scalar_type(), "; got ", x.scalar_type());
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
  return ops::with_plain_errors([&] {
    check_input("query", query, q_proj->weight);
    check_input("key", key, k_proj->weight);
    check_input("value", value, v_proj->weight);
    return merge_heads(attention(split_heads(q_proj(query)), split_heads(k_proj(key)), split_heads(v_proj(value)), o));
  });
}

at::Tensor CosformerAttentionImpl::stream(const at::Tensor& x, AttentionState& state) {
  if (!options.causal || !options.horizon.has_value()) {
    throw UserError(
        "CosformerAttention: stream() needs options.causal and options.horizon, the most tokens it will see");
  }
  if (options.kdim.value_or(options.embed_dim) != options.embed_dim ||
      options.vdim.value_or(options.embed_dim) != options.embed_dim) {
    throw UserError(fmt::format(
        "CosformerAttention: stream() is self-attention, for which kdim and vdim must be embed_dim, {}; got kdim {} "
        "and vdim {}",
        options.embed_dim, options.kdim.value_or(options.embed_dim), options.vdim.value_or(options.embed_dim)));
  }
  StreamOptions o;
  o.horizon = *options.horizon;
  o.feature_map = options.feature_map;
  o.eps = options.eps;
  return ops::with_plain_errors([&] {
    check_input("x", x, q_proj->weight);
    return merge_heads(
        attention_with_state(split_heads(q_proj(x)), split_heads(k_proj(x)), split_heads(v_proj(x)), state, o));
  });
}

AttentionState CosformerAttentionImpl::empty_state(std::int64_t batch) const {
  const std::int64_t dim = options.embed_dim / options.num_heads;
  return AttentionState::empty(batch, options.num_heads, dim, dim, q_proj->weight.options());
}

}  // namespace cosformer::nn
