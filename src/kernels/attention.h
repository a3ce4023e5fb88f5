// What every implementation of cosFormer attention is given, and the shape in which it offers itself.
//
// For one head, with positions i of queries and j of keys inside their sequence:
//     w_ij = φ(q_i)·φ(k_j) · cos(θ(i − j)) · γ^|i−j|,   o_i = Σ_j w_ij v_j / max(Σ_j w_ij, eps)
// causal: j ≤ i; otherwise all j. docs/method.md derives the forms and the backward pass.
//
// Kernels know no tensor library and allocate nothing: the caller checks the arguments, provides the memory that
// plan_* asks for, and decides which thread runs which items.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace cosformer::kernels {

enum class FeatureMap : std::uint8_t { kRelu, kElu1, kLeakyRelu, kSilu, kIdentity };
enum class Normalizer : std::uint8_t { kSum, kNone };

constexpr double kLeakyReluSlope = 0.01;
constexpr std::int64_t kMaxHeadDim = 256;

// [batch, time, heads, dim]; the last dimension is contiguous, the other strides (in elements) are free, zero included
// for inputs.
struct ConstView {
  const void* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t time_stride = 0;
  std::int64_t head_stride = 0;
};

struct View {
  void* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t time_stride = 0;
  std::int64_t head_stride = 0;
};

// One independent sequence: a row of the batch, or one of several packed end to end in a row. Attention never crosses
// from one to another. With a carried state, sequence s continues at token `position`.
struct Sequence {
  std::int64_t batch = 0;
  std::int64_t q_begin = 0, q_length = 0;  // along q's time dimension
  std::int64_t k_begin = 0, k_length = 0;  // along k's
  std::int64_t position = 0;               // absolute position of its first query and key
  double theta = 0;                        // angle per token, where the problem has no theta per head
  std::int64_t period = 0;                 // positions may be reduced modulo this (4M for a whole M); 0: unknown
};

// Accumulation type: double for float64 inputs, float for all others. It is the type of denominators and states.
struct AttentionProblem {
  DType dtype = DType::kFloat32;
  std::int64_t heads = 0, dim = 0, value_dim = 0;
  bool causal = false;
  FeatureMap feature_map = FeatureMap::kRelu;
  Normalizer normalizer = Normalizer::kSum;
  double eps = 1e-6;

  const Sequence* sequences = nullptr;
  std::int64_t sequence_count = 0;
  const double* theta = nullptr;      // [heads], in place of Sequence::theta; period is then 0
  const double* log_decay = nullptr;  // [heads], ln γ ≤ 0; null: γ = 1

  // True where a key is present; null: all are. Zeroes φ(k), so it silences any feature map. Indexed like k's time.
  const bool* key_mask = nullptr;
  std::int64_t mask_batch_stride = 0, mask_time_stride = 0;

  ConstView q, k, v;
  View out;  // backward: read only, what the forward pass wrote

  // Row sums before clamping, accumulation type; read by the backward pass. Time and head strides as given, so that
  // batch × time × heads are laid out as the caller likes. Null with Normalizer::kNone.
  View denominator;

  // Carried state (causal), all null without one. Contiguous, accumulation type, sequence s at index s:
  //   kv [sequences, heads, 2, dim, value_dim], z [sequences, heads, 2, dim]; index 0 the cosine part, 1 the sine part,
  // accumulated at absolute angles θj, token j weighing γ^(t−j), t the last token consumed. *_out may equal *_in.
  // In a backward pass *_in hold the forward's incoming state and *_out are not used.
  //
  // A bidirectional problem without a decay has no incoming state, but its backward pass needs the sum over all present
  // keys that the forward pass made: *_out of the forward pass receive it in the layout above, *_in of the backward
  // pass give it back. Null in either: not handed over, and the backward pass sums again.
  const void* state_kv_in = nullptr;
  const void* state_z_in = nullptr;
  void* state_kv_out = nullptr;
  void* state_z_out = nullptr;
};

// Gradients of a scalar loss. Views have the layout rules of the problem; every element of dq, dk, dv is written.
struct AttentionGradients {
  ConstView dout;
  View dq, dk, dv;
  const void* d_state_kv_out = nullptr;  // gradient arriving through the outgoing state, layout as the state; null: 0
  const void* d_state_z_out = nullptr;
  void* d_state_kv_in = nullptr;  // gradient of the incoming state; null: not wanted
  void* d_state_z_in = nullptr;
  double* d_log_decay = nullptr;  // [sequences, heads], the caller sums over sequences; null: not wanted
};

// How a pass is carried out: phases one after the other, items of a phase independent of each other and in any order
// on any threads. Workspace is shared by all items and lives from the first phase to the last; scratch belongs to one
// thread at a time and holds nothing between items.
constexpr int kMaxPhases = 6;

struct Schedule {
  int phases = 0;
  std::array<std::int64_t, kMaxPhases> items{};
  std::size_t workspace_bytes = 0;  // both aligned to 64 bytes by the caller
  std::size_t scratch_bytes = 0;
  std::int64_t segments = 1;  // parts that each sequence is split into, for implementations that do
};

struct Work {
  int phase = 0;
  std::int64_t begin = 0, end = 0;  // items of this phase
  void* workspace = nullptr;
  void* scratch = nullptr;
};

// One implementation. `threads` tells plan_* how much parallelism is of use; the result is exact for any value.
struct AttentionKernels {
  const char* name;
  Schedule (*plan_fwd)(const AttentionProblem&, int threads);
  void (*run_fwd)(const AttentionProblem&, const Schedule&, const Work&);
  Schedule (*plan_bwd)(const AttentionProblem&, const AttentionGradients&, int threads);
  void (*run_bwd)(const AttentionProblem&, const AttentionGradients&, const Schedule&, const Work&);
};

}  // namespace cosformer::kernels
