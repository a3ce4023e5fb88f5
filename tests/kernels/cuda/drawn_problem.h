// Problems for tests of the choice, which look at shapes, options and addresses, and never at what lies there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>

#include "kernels/cuda/choice.h"

namespace cosformer::kernels::cuda::testing {

// Tensors are never read, but say by their addresses whether rows are aligned.
alignas(16) inline unsigned char somewhere[64];
inline void* const kAligned = somewhere;
inline void* const kOdd = somewhere + 2;
inline const Device kH200{}, kA100{.capability = 80, .multiprocessors = 108};

struct Drawn {
  Problem p;
  Gradients g;
  bool backward = false;

  const Gradients* gradients() const { return backward ? &g : nullptr; }
  Choice choose_on(const Device& device) const { return choose(p, gradients(), device); }
};

inline View dense(std::int64_t time, std::int64_t heads, std::int64_t width, void* data = kAligned) {
  return {data, std::max<std::int64_t>(time, 1) * heads * width, heads * width, width};
}
inline ConstView read_only(const View& view) {
  return {view.data, view.batch_stride, view.time_stride, view.head_stride};
}

struct Shape {
  std::int64_t sequences = 16, heads = 16, length = 4'096, dim = 64;
  DType dtype = DType::kBFloat16;
};

inline Drawn problem_of(const Shape& shape, bool causal, bool decay, bool backward) {
  Drawn drawn;
  Problem& p = drawn.p;
  p.dtype = shape.dtype;
  p.sequences = shape.sequences;
  p.heads = shape.heads;
  p.dim = p.value_dim = shape.dim;
  p.q_length = p.k_length = shape.length;
  p.causal = causal;
  if (decay) p.log_decay = reinterpret_cast<const float*>(somewhere);
  const View rows = dense(shape.length, shape.heads, shape.dim);
  p.q = p.k = p.v = read_only(rows);
  p.out = rows;
  p.denominator = {kAligned, shape.length * shape.heads, 1, shape.length};
  drawn.backward = backward;
  drawn.g.dout = read_only(rows);
  drawn.g.dq = drawn.g.dk = drawn.g.dv = rows;
  return drawn;
}

// A problem of any kind.
inline Drawn draw(std::mt19937_64& random) {
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  const auto any = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + random() % values.size());
  };
  Shape shape;
  shape.sequences = one_in(40) ? 0 : any({1, 1, 2, 16, 64});
  shape.heads = any({1, 2, 4, 8, 16, 40});
  shape.length = any({0, 1, 8, 64, 130, 520, 1'024, 1'600, 4'096, 16'384, 65'536});
  shape.dim = any({64, 64, 128, 128, 40, 16, 96, 256, 192, 200, 136, 5});
  shape.dtype = one_in(4) ? (one_in(2) ? DType::kFloat16 : DType::kFloat32) : DType::kBFloat16;
  Drawn drawn = problem_of(shape, one_in(2), one_in(2), one_in(2));
  Problem& p = drawn.p;
  if (one_in(3)) p.value_dim = any({64, 128, 24, 256, 7});
  p.v.time_stride = p.out.time_stride = drawn.g.dout.time_stride = drawn.g.dv.time_stride = p.heads * p.value_dim;
  p.v.head_stride = p.out.head_stride = drawn.g.dout.head_stride = drawn.g.dv.head_stride = p.value_dim;
  if (!p.causal && one_in(3)) p.k_length = any({0, 64, 1'000, 70'000});
  if (one_in(4)) p.key_mask = reinterpret_cast<const bool*>(somewhere);
  if (one_in(8)) p.feature_map = FeatureMap::kSilu;
  if (one_in(5)) p.normalizer = Normalizer::kNone;
  if (one_in(10)) p.q.data = kOdd;
  if (one_in(2)) p.keep_key_sums = one_in(2) ? KeepSums::kAlways : KeepSums::kWhereWorthIt;
  if (p.log_decay != nullptr && one_in(2)) drawn.g.d_log_decay = reinterpret_cast<double*>(somewhere);
  if (p.causal && one_in(6)) {
    p.state_kv_in = p.state_z_in = reinterpret_cast<const float*>(somewhere);
    if (!drawn.backward) p.state_kv_out = p.state_z_out = reinterpret_cast<float*>(somewhere);
    if (drawn.backward) drawn.g.d_state_kv_out = drawn.g.d_state_z_out = reinterpret_cast<const float*>(somewhere);
  } else if (one_in(6)) {
    p.cu_seqlens_q = p.cu_seqlens_k = reinterpret_cast<const std::int32_t*>(somewhere);
    p.total_q = p.sequences * p.q_length;
    p.total_k = p.sequences * p.k_length;
  }
  return drawn;
}

}  // namespace cosformer::kernels::cuda::testing
