// What one launch of the sweep kernel is given. Plain data, shared by host and device.
#pragma once

#include <cstdint>

#include "kernels/attention.h"
#include "kernels/cuda/limits.h"

namespace cosformer::kernels::cuda {

// All results are one primitive on rows x_i, and columns y_j with values z_j:
//     result_i = Σ_{j ≤ i} c_ij (x_i·y_j) z_j,    c_ij = cos(θ(i − j)) γ^(i−j)
//   forward         x = φ(q)     y = φ(k)    z = [v, 1]   the extra value column gives the denominators
//   query gradient  x = [g, e]   y = [v, 1]  z = φ(k)     an extra feature
//   key gradient    x = [v, 1]   y = [g, e]  z = φ(q)     time reversed
//   value gradient  x = φ(k)     y = φ(q)    z = [g, e]   time reversed; the column e only where states are summed
// with g = dout / s and e = −dout·out / s. The state is Σ_j y_j ⊗ z_j with the angle and decay of j.
enum class Role : std::uint8_t { kForward, kQueryGradient, kKeyGradient, kValueGradient };

// What a sweep does: rows against a state that runs along; only the sum of the columns; rows against a finished sum;
// the same, and in one reading the sum that the other side's gradients need (Hopper kernels, gradient of the
// queries).
enum class Mode : std::uint8_t { kRun, kSum, kApply, kApplyAndSum };

struct TileSource {
  const void* data;
  std::int64_t batch_stride, head_stride;
  int time_stride;  // 32 bits, so that a row's address is one instruction
  int columns;
  int aligned;  // rows start at multiples of 16 bytes and are whole multiples of 16 bytes
};

// Where time starts and ends for a sweep: both sides from position 0 in one frame; only the column side (sums over all
// keys or queries); or only the row side (rows applied to a finished sum).
enum class Frame : std::uint8_t { kBoth, kColumns, kRows };

enum class InitialState : std::uint8_t { kZero, kOfSegment, kTotal };
enum class StoreState : std::uint8_t { kNever, kOfSegment, kFinal };
// Whether a sweep gives its results alone, or is one of two whose results add up: from two sides, or of two blocks of
// columns.
enum class Contribution : std::uint8_t { kOnly, kFirstOfTwo, kSecondOfTwo };

struct SweepParams {
  TileSource x, y, z;
  TileSource own;    // gradients of q and k: the raw q or k of the rows, for φ and φ'
  TileSource prior;  // query gradient: the forward's output
  void* destination;
  std::int64_t destination_batch_stride, destination_head_stride;
  int destination_time_stride, destination_columns, destination_aligned;

  float* denominator;  // forward: written; backward: read
  std::int64_t denominator_batch_stride, denominator_time_stride, denominator_head_stride;
  float* row_scalar;  // [rows of q][heads]: e, or the first of two sweeps' denominators

  std::int64_t sequences;
  int heads, slices, segments, segment_tokens;
  int first_tokens;  // cooperative launch of narrow heads: of the first segment
  int q_length, k_length;
  const std::int32_t* cu_seqlens_q;
  const std::int32_t* cu_seqlens_k;
  double theta;
  const float* theta_per_head;
  int theta_from_length;
  const std::int64_t* position;
  std::int64_t period;
  const float* log_decay;
  const bool* key_mask;
  std::int64_t mask_batch_stride, mask_time_stride;
  FeatureMap feature_map;
  int normalised;
  float eps;

  int reversed, strict;  // time runs backwards; the diagonal is left out
  Frame frame;
  InitialState initial;
  StoreState store;
  Contribution contribution;

  int precise;  // the sum keeps what 16-bit operands drop: it leaves as a carried state

  // State slots: [sequences][heads][slots][2·dim·value_dim + 2·dim] float, kv before z, part 0 with cos θj and part 1
  // with sin θj of the token's own position j, which decays by γ per token since. At these angles no weight within the
  // horizon comes from a difference.
  float* states;
  int slots, dim, value_dim;
  int slot_step;           // slots from one segment of the running sweep to the next: their sums are cut finer
  int total_slot;          // what InitialState::kTotal reads and StoreState::kFinal writes
  double* decay_gradient;  // one number per block; null: not wanted
};

inline std::int64_t blocks_of(const SweepParams& p) {
  return p.sequences * p.segments * p.heads * p.slices;
}

struct SequenceExtent {
  std::int64_t batch, q_begin, k_begin;
  int q_length, k_length;
};

#ifdef __CUDACC__
__device__ __forceinline__ SequenceExtent extent_of(const SweepParams& p, std::int64_t sequence) {
  if (p.cu_seqlens_q == nullptr) return {sequence, 0, 0, p.q_length, p.k_length};
  const int q = p.cu_seqlens_q[sequence], k = p.cu_seqlens_k[sequence];
  return {0, q, k, p.cu_seqlens_q[sequence + 1] - q, p.cu_seqlens_k[sequence + 1] - k};
}

__device__ __forceinline__ double theta_of(const SweepParams& p, const SequenceExtent& extent, int head) {
  if (p.theta_per_head != nullptr) return p.theta_per_head[head];
  if (!p.theta_from_length) return p.theta;
  const int longest = max(extent.q_length, extent.k_length);
  return longest == 0 ? 0.0 : 1.57079632679489661923 / longest;
}
#endif

}  // namespace cosformer::kernels::cuda
