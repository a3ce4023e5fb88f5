// What one launch of a Hopper kernel is given.
//
// Its sweeps keep one state, Σ_j φ_j ⊗ [value_j, extra_j] with the angle and decay of j, and use it in both directions:
//   forward   features φ(k), values [v, 1]: out = φ(q)·state
//   queries   the same state:               dq = [dout, e]·stateᵀ, with e = −dout·out
//   keys      features φ(q)/s, values [dout, e], time reversed: dk = [v, 1]·stateᵀ, and dv = φ(k)·state in the same
//             sweep where heads are narrow enough for one block; else dv is a sweep of its own (values)
// In full attention the queries' sweep, which has all that the keys' state is made of in hand, can sum that state as
// well (Mode::kApplyAndSum): features φ(q)/s, values [dout, e]. The division by the denominators s is on the features
// of the queries in both, so that dout is used as it came.
#pragma once

#include <cstdint>

#include "kernels/cuda/sweep_params.h"

namespace cosformer::kernels::cuda {

enum class HopperRole : std::uint8_t { kForward, kQueries, kKeys, kValues };

struct Destination {
  void* data;
  std::int64_t batch_stride, head_stride;
  int time_stride, columns;
};

// A tensor [batch, time, heads, columns] as TMA knows it (CUtensorMap).
struct alignas(128) TensorMap {
  unsigned char bytes[128];
};

struct HopperParams {
  SweepParams sweep;  // sequences, angles, decays, segments, states; its tiles and destination are not used
  TileSource q, k, v, dout, out;
  Destination first, second;  // out, dq, or dk and dv
  float* sums;                // Mode::kApplyAndSum: slots for the rows' own sums, one for each segment
  int sum_slots;
  unsigned* segment_flags;  // of cooperative launches: how far each block has come
  bool scan_sums;           // sums of wide heads: blocks, all on the device at the same time, also scan them
  // The cooperative launch of narrow heads: slots for the states before every so many tokens, which the backward pass
  // will want; null: not wanted.
  float* kept;
  int kept_tokens;
  // Full attention with a decay: states after each pair of chunks, their values in a tensor that is written later
  // (states_after.cuh), their extra columns, and what follows each segment.
  TileSource after;
  float* after_extras;
  float* after_segments;
  TensorMap q_map, k_map, v_map, out_map;  // where rows come and go by TMA
};

}  // namespace cosformer::kernels::cuda
