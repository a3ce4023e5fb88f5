// A problem of the operator on a GPU: shapes, options, device pointers and strides. Plain data that needs no CUDA.
#pragma once

#include <cstdint>

#include "kernels/attention.h"

namespace cosformer::kernels::cuda {

// Whether the forward pass leaves its sums over the keys to the backward pass: worth it where they take little memory
// beside the keys themselves.
enum class KeepSums : std::uint8_t { kNever, kWhereWorthIt, kAlways };

// Float16, bfloat16 and float32. Denominators and states are float32.
struct Problem {
  DType dtype = DType::kBFloat16;
  std::int64_t heads = 0, dim = 0, value_dim = 0;
  bool causal = false;
  FeatureMap feature_map = FeatureMap::kRelu;
  Normalizer normalizer = Normalizer::kSum;
  double eps = 1e-6;

  // A dense batch of `sequences` rows with these lengths; or, with cu_seqlens_*, that many sequences packed end to end
  // in one row, and these lengths are upper bounds of the longest one.
  std::int64_t sequences = 0;
  std::int64_t q_length = 0, k_length = 0;
  const std::int32_t* cu_seqlens_q = nullptr;  // device, [sequences + 1]
  const std::int32_t* cu_seqlens_k = nullptr;
  std::int64_t total_q = 0;  // packed only: tokens of all sequences together

  // Angle per token: per head where given; else π / (2 max(Tq, Tk)) of each sequence when theta_from_length; else
  // theta.
  double theta = 0;
  const float* theta_per_head = nullptr;  // device, [heads]
  bool theta_from_length = false;
  std::int64_t period = 0;                 // positions may be reduced modulo this (4M for a whole M); 0: unknown
  const std::int64_t* position = nullptr;  // device, [sequences]: tokens consumed before, with a state; null: 0
  const float* log_decay = nullptr;        // device, [heads], ln γ ≤ 0; null: γ = 1

  const bool* key_mask = nullptr;  // device; true where a key is present, indexed like k's batch and time
  std::int64_t mask_batch_stride = 0, mask_time_stride = 0;

  ConstView q, k, v;
  View out;          // backward: read only
  View denominator;  // float32; null with Normalizer::kNone. Backward: read only

  // Carried state (causal, Tq = Tk): kv [sequences, heads, 2, dim, value_dim], z [sequences, heads, 2, dim], float32,
  // contiguous; meaning as in kernels/attention.h. *_out may equal *_in.
  const float* state_kv_in = nullptr;
  const float* state_z_in = nullptr;
  float* state_kv_out = nullptr;
  float* state_z_out = nullptr;

  // Where the forward pass leaves its sums over the keys, Choice::key_sum_floats numbers at a multiple of 16 bytes, and
  // the backward pass finds them: over all of them in full attention without a decay, before each segment of long
  // causal sequences. Null where they are not kept: the backward pass sums again.
  float* key_sums = nullptr;
  // Whether they are kept; and for kWhereWorthIt, packed only, the keys of all sequences together.
  KeepSums keep_key_sums = KeepSums::kNever;
  std::int64_t total_k = 0;
};

struct Gradients {
  ConstView dout;
  View dq, dk, dv;
  const float* d_state_kv_out = nullptr;  // gradient arriving through the outgoing state; null: 0
  const float* d_state_z_out = nullptr;
  float* d_state_kv_in = nullptr;  // gradient of the incoming state; null: not wanted
  float* d_state_z_in = nullptr;
  double* d_log_decay = nullptr;  // device, [heads], summed over sequences; null: not wanted
};

// Whether rows start at multiples of 16 bytes and are whole multiples of 16 bytes.
template <class AnyView>
bool in_pieces(const AnyView& view, std::int64_t columns, DType dtype) {
  const std::int64_t unit = 16 / static_cast<std::int64_t>(size_of(dtype));
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && view.batch_stride % unit == 0 &&
         view.time_stride % unit == 0 && view.head_stride % unit == 0 && columns % unit == 0;
}

// Numbers of one state, or of one sum over keys.
inline std::int64_t state_floats(std::int64_t dim, std::int64_t value_dim) {
  return 2 * dim * (value_dim + 1);
}

}  // namespace cosformer::kernels::cuda
