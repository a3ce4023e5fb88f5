// A Transformer block: attention and a feed-forward part, each with a norm, dropout and a residual connection.
#pragma once

#include <memory>
#include <string>

#include "nn/multi_head_attention.h"
#include "nn/norm.h"

namespace cosformer::nn {

struct BlockConfig {
  MultiHeadConfig attention;
  std::int64_t feed_forward = 0;    // its inner width
  std::string activation = "gelu";  // gelu, relu, gated (SiLU of one half times the other)
  std::string norm = "layer";       // layer, rms
  bool norm_first = true;           // before each part, or after its residual connection
  double dropout = 0;
};

class FeedForward : public torch::nn::Module {
 public:
  explicit FeedForward(const BlockConfig& config);
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Linear in_proj{nullptr}, out_proj{nullptr};

 private:
  std::string activation_;
};

class Block : public torch::nn::Module {
 public:
  Block(const BlockConfig& config, const AttentionConfig& attention);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask);
  // As the attention's: of packed sequences, and of the next tokens of a stream.
  at::Tensor forward_packed(const at::Tensor& x, const Packing& packing);
  at::Tensor forward_stream(const at::Tensor& x, LayerState& state, const StreamClock& clock);

  std::shared_ptr<Norm> attention_norm, feed_forward_norm;
  std::shared_ptr<MultiHeadAttention> attention;
  std::shared_ptr<FeedForward> feed_forward;

 private:
  template <class Attend>
  at::Tensor run(const at::Tensor& x, const Attend& attend);
  at::Tensor drop(const at::Tensor& x) const;
  BlockConfig config_;
  bool products_only_;  // nothing but products of matrices reads the attention's input
};

}  // namespace cosformer::nn
