#include "nn/mechanisms/kernelised/token_decay_mechanism.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "nn/full_precision.h"
#include "nn/row_products.h"

namespace cosformer::nn {
namespace {

// Their product bounds the exponents of a segment: e^±58 is an ordinary number in float32 and in bfloat16.
constexpr std::int64_t kSegment = 64;
constexpr double kMostForgotten = 0.9;

}  // namespace

TokenDecayMechanism::TokenDecayMechanism(const AttentionConfig& config, const AttentionShape& shape)
    : CosineMechanism(config, shape) {
  step_proj = register_module("step_proj", torch::nn::Linear(shape.width, shape.heads));
  const at::NoGradGuard no_grad;
  step_proj->bias.fill_(std::log(std::numbers::e - 1));  // softplus of it is 1
}

at::Tensor TokenDecayMechanism::log_kept(const at::Tensor& x) {
  const FullPrecision full_precision;
  const at::Tensor wide = at_least_float(x);
  const auto as_x = [&](const at::Tensor& weight) { return weight.to(wide.scalar_type()); };
  const at::Tensor step = at::softplus(product(wide, as_x(step_proj->weight), as_x(step_proj->bias)));
  return (step * as_x(log_decay())).clamp_min(-kMostForgotten);
}

at::Tensor TokenDecayMechanism::scan(const at::Tensor& log_kept, const at::Tensor& q, const at::Tensor& k,
                                     const at::Tensor& v, const at::Tensor& key_mask, AttentionState& state) const {
  StreamOptions options = stream_options();
  options.feature_map = "identity";
  options.log_decay = at::Tensor();
  // float16 ends long before e^58.
  const at::ScalarType type = v.scalar_type() == at::kHalf ? at::kFloat : v.scalar_type();
  at::Tensor kept = log_kept, query_features = features(q), key_features = features(k);
  if (key_mask.defined()) {  // absent tokens neither add nor forget
    const at::Tensor present = key_mask.unsqueeze(-1).to(kept.scalar_type());
    kept = kept * present;
    key_features = key_features * present.unsqueeze(-1);
  }
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < v.size(1); begin += kSegment) {
    const std::int64_t count = std::min(kSegment, v.size(1) - begin);
    const at::Tensor since = kept.narrow(1, begin, count).cumsum(1);  // [B, count, H], from 0 downwards
    const at::Tensor scale = since.exp().unsqueeze(-1);
    const at::Tensor queries = (query_features.narrow(1, begin, count) * scale).to(type);
    // Not a division by `scale`: its gradient would divide by the square, which is 0 in float32.
    const at::Tensor keys = (key_features.narrow(1, begin, count) * since.neg().exp().unsqueeze(-1)).to(type);
    parts.push_back(attention_with_state(queries, keys, v.narrow(1, begin, count).to(type), state, options));
    const at::Tensor left = scale.select(1, count - 1).to(state.kv.scalar_type());  // [B, H, 1]
    state.kv = state.kv * left.unsqueeze(-1).unsqueeze(-1);
    state.z = state.z * left.unsqueeze(-1);
  }
  return (parts.size() == 1 ? parts[0] : at::cat(parts, 1)).to(v.scalar_type());
}

at::Tensor TokenDecayMechanism::forward(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  TORCH_CHECK(false, "attention.token_decay reads the block's input; call forward_with_input");
}

at::Tensor TokenDecayMechanism::forward_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                                                   const at::Tensor& v, const at::Tensor& key_mask) {
  if (v.size(1) == 0) return at::zeros_like(v);
  AttentionState state =
      AttentionState::empty(v.size(0), shape_.heads, q.size(3), v.size(3), at_least_float(v).options());
  return scan(log_kept(x), q, k, v, key_mask, state);
}

at::Tensor TokenDecayMechanism::forward_packed(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                               const Packing&) {
  throw UserError("settings: attention.token_decay cannot keep packed documents apart; set data.documents_apart=false");
}

at::Tensor TokenDecayMechanism::forward_stream(const at::Tensor&, const at::Tensor&, const at::Tensor&, MechanismState&,
                                               const StreamClock&) {
  TORCH_CHECK(false, "attention.token_decay reads the block's input; call forward_stream_with_input");
}

at::Tensor TokenDecayMechanism::forward_stream_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                                                          const at::Tensor& v, MechanismState& state,
                                                          const StreamClock& clock) {
  AttentionState carried{state.tensors.at(0), state.tensors.at(1), clock.position()};
  const at::Tensor out = scan(log_kept(x), q, k, v, {}, carried);
  state.tensors = {carried.kv, carried.z};
  return out;
}

}  // namespace cosformer::nn
