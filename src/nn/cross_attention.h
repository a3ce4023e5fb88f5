// Attention of a decoder to what an encoder has read: queries from the one, keys and values from the other.
//
// Any mechanism that sees a meaning in it (Mechanism::forward_cross) does the work. What cosformer_plus adds keeps to
// what makes sense between two sequences: the output gate reads the decoder's input; there is no decay and no
// convolution, because distance and neighbourhood are those of one sequence. Rotary positions are of one sequence too.
#pragma once

#include <memory>

#include <torch/nn/modules/linear.h>

#include "nn/mechanisms/mechanism.h"
#include "nn/multi_head_attention.h"

namespace cosformer::nn {

// `config` without what belongs to one sequence: decay and convolution.
AttentionConfig cross_attention_config(const AttentionConfig& config);

class CrossAttention : public torch::nn::Module {
 public:
  // Of `config`, width, heads, dimension, greatest length and bias count. Throws UserError for a mechanism that cannot.
  CrossAttention(const MultiHeadConfig& config, const AttentionConfig& attention);

  // x [B, T, width] over source [B, S, width]; mask [B, S] bool, true = present, or undefined → [B, T, width]
  at::Tensor forward(const at::Tensor& x, const at::Tensor& source, const at::Tensor& mask);

  // The same for the next tokens of a text that is written.
  MechanismState memory(const at::Tensor& source, const at::Tensor& mask);
  at::Tensor forward_stream(const at::Tensor& x, const MechanismState& memory, const StreamClock& clock);

  torch::nn::Linear q_proj{nullptr}, kv_proj{nullptr}, gate_proj{nullptr}, out_proj{nullptr};
  std::shared_ptr<Mechanism> mechanism;
  at::Tensor head_norm_weight;  // [D]

 private:
  at::Tensor queries(const at::Tensor& x);
  std::pair<at::Tensor, at::Tensor> keys_and_values(const at::Tensor& source);
  at::Tensor finished(const at::Tensor& x, at::Tensor out);

  AttentionShape shape_;
};

}  // namespace cosformer::nn
