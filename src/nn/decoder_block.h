// A block of a decoder: causal self-attention, cross-attention and a feed-forward part, each with a norm, dropout and a
// residual connection.
#pragma once

#include <memory>

#include "nn/block.h"
#include "nn/cross_attention.h"

namespace cosformer::nn {

class DecoderBlock : public torch::nn::Module {
 public:
  // `config`'s attention is the causal one.
  DecoderBlock(const BlockConfig& config, const AttentionConfig& attention, const AttentionConfig& cross_attention);

  // x [B, T, width] with its mask, source [B, S, width] with its own; masks may be undefined.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask, const at::Tensor& source,
                     const at::Tensor& source_mask);
  // The next tokens of a text that is written; `memory` is the cross-attention's.
  at::Tensor forward_stream(const at::Tensor& x, LayerState& state, const MechanismState& memory,
                            const StreamClock& clock);

  std::shared_ptr<Norm> attention_norm, cross_norm, feed_forward_norm;
  std::shared_ptr<MultiHeadAttention> attention;
  std::shared_ptr<CrossAttention> cross;
  std::shared_ptr<FeedForward> feed_forward;

 private:
  template <class Part>
  at::Tensor with_residual(const at::Tensor& x, Norm& norm, const Part& part, bool products_only = true) const;
  template <class Attend, class Look>
  at::Tensor run(const at::Tensor& x, const Attend& attend, const Look& look);

  BlockConfig config_;
  bool products_only_;  // nothing but products of matrices reads the self-attention's input
};

}  // namespace cosformer::nn
