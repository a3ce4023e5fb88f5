// One head of one sequence as plain arrays: what the reference forms compute on.
//
// Not fast and not meant to be: inputs are widened into scratch memory element by element, results are narrowed back.
// The definition is computed one size wider than its inputs: in double, and in long double where they are double.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/attention.h"
#include "kernels/feature_map.h"

namespace cosformer::kernels::reference {

// Hands out pieces of the caller's scratch memory; with no memory behind it, it only counts.
class Arena {
 public:
  explicit Arena(void* memory) : memory_(static_cast<std::byte*>(memory)) {}

  template <class T>
  T* take(std::int64_t count) {
    const std::size_t begin = used_;
    used_ += (static_cast<std::size_t>(std::max<std::int64_t>(count, 0)) * sizeof(T) + 63) / 64 * 64;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + begin);
  }

  std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

template <class Real>
Real load_element(DType dtype, const void* data, std::int64_t index) {
  switch (dtype) {
    case DType::kFloat64: return static_cast<Real>(static_cast<const double*>(data)[index]);
    case DType::kFloat32: return static_cast<Real>(static_cast<const float*>(data)[index]);
    case DType::kBFloat16: return static_cast<Real>(to_float(static_cast<const BFloat16*>(data)[index]));
    case DType::kFloat16: return static_cast<Real>(to_float(static_cast<const Float16*>(data)[index]));
  }
  return 0;
}

template <class Real>
void store_element(DType dtype, void* data, std::int64_t index, Real value) {
  switch (dtype) {
    case DType::kFloat64: static_cast<double*>(data)[index] = static_cast<double>(value); return;
    case DType::kFloat32: static_cast<float*>(data)[index] = static_cast<float>(value); return;
    case DType::kBFloat16: static_cast<BFloat16*>(data)[index] = to_bfloat16(static_cast<float>(value)); return;
    case DType::kFloat16: static_cast<Float16*>(data)[index] = to_float16(static_cast<float>(value)); return;
  }
}

template <class AnyView>
std::int64_t element_offset(const AnyView& view, std::int64_t batch, std::int64_t time, std::int64_t head) {
  return batch * view.batch_stride + time * view.time_stride + head * view.head_stride;
}

// Copies rows [begin, begin + length) of one head into a dense [length, width] array.
template <class Real, class AnyView>
void load_rows(DType dtype, const AnyView& view, std::int64_t batch, std::int64_t head, std::int64_t begin,
               std::int64_t length, std::int64_t width, Real* rows) {
  for (std::int64_t t = 0; t < length; ++t) {
    const std::int64_t offset = element_offset(view, batch, begin + t, head);
    for (std::int64_t c = 0; c < width; ++c) rows[t * width + c] = load_element<Real>(dtype, view.data, offset + c);
  }
}

template <class Real>
void store_rows(DType dtype, const View& view, std::int64_t batch, std::int64_t head, std::int64_t begin,
                std::int64_t length, std::int64_t width, const Real* rows) {
  for (std::int64_t t = 0; t < length; ++t) {
    const std::int64_t offset = element_offset(view, batch, begin + t, head);
    for (std::int64_t c = 0; c < width; ++c) store_element(dtype, view.data, offset + c, rows[t * width + c]);
  }
}

inline bool key_is_present(const AttentionProblem& p, const Sequence& s, std::int64_t j) {
  return p.key_mask == nullptr || p.key_mask[s.batch * p.mask_batch_stride + (s.k_begin + j) * p.mask_time_stride];
}

// What a bidirectional problem has in this place is the sum that the forward pass handed over; here it is summed again.
inline bool has_incoming_state(const AttentionProblem& p) {
  return p.causal && p.state_kv_in != nullptr;
}

template <class Real>
struct Angle {
  Real cosine, sine;
};

// cos and sin of θ·position. The position is reduced as a whole number first, so that 10⁹ tokens cost no accuracy.
template <class Real>
Angle<Real> angle_at(double theta, std::int64_t position, std::int64_t period) {
  if (period > 0) position %= period;
  using Wide = std::conditional_t<std::is_same_v<Real, float>, double, Real>;
  const Wide radians = static_cast<Wide>(theta) * static_cast<Wide>(position);
  return {static_cast<Real>(std::cos(radians)), static_cast<Real>(std::sin(radians))};
}

// γ^n of a head.
template <class Real>
Real decay_power(const AttentionProblem& p, std::int64_t head, std::int64_t n) {
  using Wide = std::conditional_t<std::is_same_v<Real, float>, double, Real>;
  const double log_decay = p.log_decay != nullptr ? p.log_decay[head] : 0.0;
  return static_cast<Real>(std::exp(static_cast<Wide>(log_decay) * static_cast<Wide>(n)));
}

inline double theta_of(const AttentionProblem& p, const Sequence& s, std::int64_t head) {
  return p.theta != nullptr ? p.theta[head] : s.theta;
}

inline DType accumulation_of(DType dtype) {
  return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

// The row sum of query i, stored in the accumulation type.
template <class Real>
Real load_denominator(const AttentionProblem& p, const Sequence& s, std::int64_t head, std::int64_t i) {
  return load_element<Real>(accumulation_of(p.dtype), p.denominator.data,
                            element_offset(p.denominator, s.batch, s.q_begin + i, head));
}

template <class Real>
void store_denominator(const AttentionProblem& p, const Sequence& s, std::int64_t head, std::int64_t i, Real sum) {
  store_element(accumulation_of(p.dtype), p.denominator.data,
                element_offset(p.denominator, s.batch, s.q_begin + i, head), sum);
}

// One head's state as [2·dim, value_dim + 1], the last column being z: from and to the tensors of a problem.
template <class Real>
void load_state(const AttentionProblem& p, const void* kv, const void* z, std::int64_t sequence, std::int64_t head,
                Real* state) {
  const std::int64_t first = (sequence * p.heads + head) * 2 * p.dim;
  const std::int64_t columns = p.value_dim + 1;
  for (std::int64_t c = 0; c < 2 * p.dim; ++c) {
    for (std::int64_t e = 0; e < p.value_dim; ++e) {
      state[c * columns + e] = load_element<Real>(accumulation_of(p.dtype), kv, (first + c) * p.value_dim + e);
    }
    state[c * columns + p.value_dim] = load_element<Real>(accumulation_of(p.dtype), z, first + c);
  }
}

template <class Real>
void store_state(const AttentionProblem& p, void* kv, void* z, std::int64_t sequence, std::int64_t head,
                 const Real* state) {
  const std::int64_t first = (sequence * p.heads + head) * 2 * p.dim;
  const std::int64_t columns = p.value_dim + 1;
  for (std::int64_t c = 0; c < 2 * p.dim; ++c) {
    for (std::int64_t e = 0; e < p.value_dim; ++e) {
      store_element(accumulation_of(p.dtype), kv, (first + c) * p.value_dim + e, state[c * columns + e]);
    }
    store_element(accumulation_of(p.dtype), z, first + c, state[c * columns + p.value_dim]);
  }
}

}  // namespace cosformer::kernels::reference
