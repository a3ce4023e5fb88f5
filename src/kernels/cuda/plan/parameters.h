// What a problem's tensors and options are as a kernel's parameters; segments, states and workspace are filled in by
// attention_run.cc.
#pragma once

#include "kernels/cuda/hopper/params.h"
#include "kernels/cuda/plan/segments.h"
#include "kernels/cuda/problem.h"

namespace cosformer::kernels::cuda {

template <class AnyView>
TileSource source(const AnyView& view, std::int64_t columns, DType dtype) {
  return {view.data,
          view.batch_stride,
          view.head_stride,
          static_cast<int>(view.time_stride),
          static_cast<int>(columns),
          in_pieces(view, columns, dtype) ? 1 : 0};
}

// The side that is contracted: features where results are values, values where they are features.
inline std::int64_t features_of(const Problem& p, Role role) {
  return role == Role::kForward || role == Role::kValueGradient ? p.dim : p.value_dim;
}

inline SweepParams sweep_params(const Problem& p, const Gradients* g, Role role, float* row_scalar) {
  SweepParams s{};
  const DType t = p.dtype;
  const TileSource q = source(p.q, p.dim, t), k = source(p.k, p.dim, t), v = source(p.v, p.value_dim, t);
  const View* to = &p.out;
  std::int64_t columns = p.value_dim;
  if (role == Role::kForward) {
    s.x = q;
    s.y = k;
    s.z = v;
  } else {
    const TileSource dout = source(g->dout, p.value_dim, t);
    s.prior = source(p.out, p.value_dim, t);
    if (role == Role::kQueryGradient) {
      s.x = dout;
      s.y = v;
      s.z = k;
      s.own = q;
      to = &g->dq;
      columns = p.dim;
    } else if (role == Role::kKeyGradient) {
      s.x = v;
      s.y = dout;
      s.z = q;
      s.own = k;
      to = &g->dk;
      columns = p.dim;
    } else {
      s.x = k;
      s.y = q;
      s.z = dout;
      to = &g->dv;
    }
  }
  s.destination = to->data;
  s.destination_batch_stride = to->batch_stride;
  s.destination_time_stride = static_cast<int>(to->time_stride);
  s.destination_head_stride = to->head_stride;
  s.destination_columns = static_cast<int>(columns);
  s.destination_aligned = in_pieces(*to, columns, t) ? 1 : 0;
  s.slices = value_slices(features_of(p, role), columns);
  s.denominator = static_cast<float*>(p.denominator.data);
  s.denominator_batch_stride = p.denominator.batch_stride;
  s.denominator_time_stride = p.denominator.time_stride;
  s.denominator_head_stride = p.denominator.head_stride;
  s.row_scalar = row_scalar;
  s.sequences = p.sequences;
  s.heads = static_cast<int>(p.heads);
  s.segments = 1;
  s.slot_step = 1;
  s.q_length = static_cast<int>(p.q_length);
  s.k_length = static_cast<int>(p.k_length);
  s.cu_seqlens_q = p.cu_seqlens_q;
  s.cu_seqlens_k = p.cu_seqlens_k;
  s.theta = p.theta;
  s.theta_per_head = p.theta_per_head;
  s.theta_from_length = p.theta_from_length ? 1 : 0;
  s.position = p.position;
  s.period = p.period;
  s.log_decay = p.log_decay;
  s.key_mask = p.key_mask;
  s.mask_batch_stride = p.mask_batch_stride;
  s.mask_time_stride = p.mask_time_stride;
  s.feature_map = p.feature_map;
  s.normalised = p.normalizer == Normalizer::kSum ? 1 : 0;
  s.eps = static_cast<float>(p.eps);
  s.dim = static_cast<int>(p.dim);
  s.value_dim = static_cast<int>(p.value_dim);
  return s;
}

// The same for the Hopper kernels.
inline HopperParams hopper_params(const Problem& p, const Gradients* g, Role role, const SweepParams& s) {
  const DType t = p.dtype;
  const auto destination = [](const View& view, std::int64_t columns) {
    return Destination{view.data, view.batch_stride, view.head_stride, static_cast<int>(view.time_stride),
                       static_cast<int>(columns)};
  };
  const std::int64_t columns = role == Role::kForward || role == Role::kValueGradient ? p.value_dim : p.dim;
  HopperParams w{};
  w.sweep = s;
  w.sweep.slices = hopper_slices(columns);
  w.q = source(p.q, p.dim, t);
  w.k = source(p.k, p.dim, t);
  w.v = source(p.v, p.value_dim, t);
  w.out = source(p.out, p.value_dim, t);
  w.first = destination(p.out, p.value_dim);
  if (role != Role::kForward) {
    w.dout = source(g->dout, p.value_dim, t);
    w.first = destination(role == Role::kQueryGradient ? g->dq : g->dk, p.dim);
    w.second = destination(g->dv, p.value_dim);
  }
  return w;
}

}  // namespace cosformer::kernels::cuda
