// One interface for every attention mechanism: queries, keys and values of all heads in, outputs out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "nn/mechanisms/attention_config.h"
#include "nn/stream.h"

namespace cosformer::nn {

// What the mechanism is for.
struct AttentionShape {
  std::int64_t heads = 1, dim = 64;
  std::int64_t max_length = 0;  // no sequence is longer
  bool causal = false;
  std::int64_t width = 0;   // of the block's input
  std::int64_t qk_dim = 0;  // of queries and keys where positions have changed it; 0: dim

  std::int64_t query_dim() const { return qk_dim > 0 ? qk_dim : dim; }
};

class Mechanism : public torch::nn::Module {
 public:
  // q, k, v [B, T, H, D], time and head strides free; key_mask [B, T] bool, true = present, or undefined → [B, T, H, D]
  virtual at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& key_mask) = 0;

  // As a block calls it: x [B, T, width] is what q, k and v were projected from, for the few mechanisms that read it.
  virtual at::Tensor forward_with_input(const at::Tensor& /*x*/, const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v, const at::Tensor& key_mask) {
    return forward(q, k, v, key_mask);
  }

  // Of several sequences, none of which sees another. Throws UserError where the mechanism cannot.
  virtual at::Tensor forward_packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const Packing& packing);

  // What forward_stream() begins with. `like` gives device and dtype of q, k and v. Throws UserError where the
  // mechanism cannot be run on a text stretch by stretch.
  virtual MechanismState empty_state(std::int64_t batch, const at::TensorOptions& like) const;

  // Causal: the next tokens of each sequence, after those that `state`, which is advanced, remembers. `clock` still
  // stands before them. Differentiable through the states.
  virtual at::Tensor forward_stream(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    MechanismState& state, const StreamClock& clock);

  // The same as a block calls it, as forward_with_input().
  virtual at::Tensor forward_stream_with_input(const at::Tensor& /*x*/, const at::Tensor& q, const at::Tensor& k,
                                               const at::Tensor& v, MechanismState& state, const StreamClock& clock) {
    return forward_stream(q, k, v, state, clock);
  }

  // The most tokens that a stream may have; nothing: any number.
  virtual std::optional<std::int64_t> longest_stream() const { return std::nullopt; }

  // Cross-attention: queries of one sequence [B, Tq, H, D], keys and values of another [B, Tk, H, D], with its key_mask
  // [B, Tk] or none. Positions of both count from 0; every query sees every key. Throws UserError where the mechanism
  // cannot.
  virtual at::Tensor forward_cross(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const at::Tensor& key_mask);

  // The same for the next queries of a text that is written: what is to be kept of the other sequence, and what the
  // queries behind those of `clock` get from it. Here, for mechanisms that know no positions, keys and values are kept.
  virtual MechanismState cross_memory(const at::Tensor& k, const at::Tensor& v, const at::Tensor& key_mask) const;
  virtual at::Tensor recall(const at::Tensor& q, const MechanismState& memory, const StreamClock& clock);
};

// Throws UserError for what require_possible() refuses and for shapes that the mechanism cannot have.
std::shared_ptr<Mechanism> make_mechanism(const AttentionConfig& config, const AttentionShape& shape);

}  // namespace cosformer::nn
