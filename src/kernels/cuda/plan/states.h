// The small kernels between sweeps: prefixes of segment states, conversion from and to the carried state, and the sum
// of the decay's gradient.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/sweep_params.h"

namespace cosformer::kernels::cuda {

struct StateParams {
  const SweepParams* sweep;  // host copy: sequences, decays, slots, segments and direction of the sweep it serves
  const float* kv;           // carried state to start from; null: zero
  const float* z;
  float* kv_out;
  float* z_out;
  // Slots count decays up to the token before the next row. The state is carried like that; its gradient, which belongs
  // to the last token itself, takes one step more on the way in and one less on the way out.
  bool gradient;
  bool total;    // store only what follows the last segment
  float* after;  // slots for sums in the other direction: replaced by the state after each segment; null: none
};

// Replaces the sums of the segments by the state before each of them, or with `total` adds them up.
cudaError_t launch_state_scan(const StateParams& params, cudaStream_t stream);
// Writes the total slot as a carried state.
cudaError_t launch_state_export(const StateParams& params, cudaStream_t stream);

struct DecayParams {
  const SweepParams* sweep;
  const double* query_parts;  // what the sweeps left, per block
  const double* key_parts;
  int sweeps;  // parts of so many sweeps of each kind follow one another
  int query_slices, key_slices, query_segments, key_segments;
  // Terms of the carried state: <S_out, dS_out> and <S_in, dS_in>; null where there is none.
  const float* final_states;     // slots of the state
  const float* gradient_states;  // slots of the state's gradient
  const float *kv_in, *z_in, *d_kv_out, *d_z_out;
  double* state_terms;  // workspace [sequences][heads]
  double* result;       // [heads]
};

cudaError_t launch_decay_gradient(const DecayParams& params, cudaStream_t stream);

}  // namespace cosformer::kernels::cuda
