#include "nn/mechanisms/softmax/softmax_mechanism.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "ops/torch_compat.h"

namespace cosformer::nn {
namespace {

constexpr std::int64_t kLeastRoom = 64;

// x [B, H, T, D] behind the first `length` tokens of `cache`, which is replaced where it is full, shared with another
// state or part of a graph of gradients.
void append(at::Tensor& cache, const at::Tensor& x, std::int64_t length) {
  const std::int64_t after = length + x.size(2);
  if (at::GradMode::is_enabled() && (x.requires_grad() || cache.requires_grad())) {
    cache = at::cat({cache.narrow(2, 0, length), x.to(cache.scalar_type())}, 2);
    return;
  }
  if (after > cache.size(2) || cache.use_count() > 1 || cache.requires_grad()) {
    // Twice as much as is needed: copies cost no more than the tokens themselves.
    const std::int64_t room = std::max({2 * after, cache.size(2), kLeastRoom});
    at::Tensor larger = at::zeros({x.size(0), x.size(1), room, x.size(3)}, cache.options().requires_grad(false));
    larger.narrow(2, 0, length).copy_(cache.detach().narrow(2, 0, length));
    cache = larger;
  }
  cache.narrow(2, length, x.size(2)).copy_(x.detach());
}

}  // namespace

at::Tensor SoftmaxMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const at::Tensor& key_mask) {
  const at::Tensor visible = key_mask.defined() ? key_mask.unsqueeze(1).unsqueeze(1) : at::Tensor();  // [B, 1, 1, T]
  const double dropout = is_training() ? config_.dropout : 0;
  return ops::softmax_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), shape_.causal, visible,
                                dropout)
      .transpose(1, 2);
}

at::Tensor SoftmaxMechanism::forward_packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                            const Packing& packing) {
  // Every row begins a sequence, so tokens of different rows never see each other.
  const at::Tensor same = packing.document.unsqueeze(2) == packing.document.unsqueeze(1);  // [B, T, T]
  const double dropout = is_training() ? config_.dropout : 0;
  return ops::softmax_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), shape_.causal,
                                same.unsqueeze(1), dropout)
      .transpose(1, 2);
}

MechanismState SoftmaxMechanism::empty_state(std::int64_t batch, const at::TensorOptions& like) const {
  const auto cache = [&](std::int64_t dim) { return at::zeros({batch, shape_.heads, 0, dim}, like); };
  return {{cache(shape_.query_dim()), cache(shape_.dim)}};
}

at::Tensor SoftmaxMechanism::forward_stream(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                            MechanismState& state, const StreamClock& clock) {
  const std::int64_t time = q.size(1), before = state.length, after = before + time;
  append(state.tensors.at(0), k.transpose(1, 2), before);
  append(state.tensors.at(1), v.transpose(1, 2), before);
  state.length = after;
  at::Tensor visible;
  const bool all_alike = clock.in_step() && clock.most_consumed() == before;
  if (time > 1 && (before > 0 || !all_alike)) {
    visible = at::ones({time, after}, q.options().dtype(at::kBool)).tril(before).unsqueeze(0).unsqueeze(0);
  }
  if (!all_alike) {  // rows that were begun anew do not see what came before
    const at::Tensor places = at::arange(after, clock.position().options());
    const at::Tensor own = (places.unsqueeze(0) >= (before - clock.position()).unsqueeze(1)).unsqueeze(1).unsqueeze(1);
    visible = visible.defined() ? visible.logical_and(own) : own;
  }
  const auto cached = [&](std::size_t at) { return state.tensors[at].narrow(2, 0, after).to(q.scalar_type()); };
  const double dropout = is_training() ? config_.dropout : 0;
  return ops::softmax_attention(q.transpose(1, 2), cached(0), cached(1), time > 1 && before == 0 && all_alike, visible,
                                dropout)
      .transpose(1, 2);
}

}  // namespace cosformer::nn
