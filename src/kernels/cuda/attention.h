// cosFormer attention on NVIDIA GPUs: what the kernels are given and how they are started.
//
// The operator is the one of kernels/attention.h; all data pointers here are device pointers. The functions only
// enqueue work on the given stream: they allocate nothing, never synchronise and never read device memory, so they can
// be captured in a CUDA graph. Same inputs and same shapes give the same bits: no atomics, and the number of parts that
// a sequence is split into depends on shapes alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/attention.h"

namespace cosformer::kernels::cuda {

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

  // Where the forward pass leaves its sums over the keys, key_sum_floats() numbers, and the backward pass finds them:
  // over all of them in full attention without a decay, before each segment of long causal sequences. Null in either:
  // the backward pass sums again.
  float* key_sums = nullptr;
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

// Length of Problem::key_sums on the current device, 0 where a pass has no such sums; and that of one of them.
std::int64_t key_sum_floats(const Problem& problem);
inline std::int64_t state_floats(const Problem& problem) {
  return 2 * problem.dim * (problem.value_dim + 1);
}

// Bytes of device memory (256-byte aligned) that the pass needs as workspace.
std::size_t fwd_workspace_bytes(const Problem& problem);
std::size_t bwd_workspace_bytes(const Problem& problem, const Gradients& gradients);

// cudaErrorInvalidValue for problems outside the contract, else what the launches returned.
cudaError_t attention_fwd(const Problem& problem, void* workspace, std::size_t workspace_bytes, cudaStream_t stream);
cudaError_t attention_bwd(const Problem& problem, const Gradients& gradients, void* workspace,
                          std::size_t workspace_bytes, cudaStream_t stream);

// One to kMaxDecodeTokens new tokens per sequence on a carried state, which is updated (in place when *_out equal
// *_in). A dense causal problem with Tq = Tk; needs no workspace and writes no denominators unless asked to.
constexpr std::int64_t kMaxDecodeTokens = 8;
cudaError_t attention_decode(const Problem& problem, cudaStream_t stream);

}  // namespace cosformer::kernels::cuda
