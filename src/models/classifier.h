// An encoder with a classifier on top: of one sequence, or of two that the same encoder reads.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include "models/config.h"
#include "models/position_embedding.h"
#include "models/sequences.h"
#include "nn/block.h"

namespace cosformer::models {

class Encoder : public torch::nn::Module {
 public:
  explicit Encoder(const ModelConfig& config);
  at::Tensor forward(const Sequences& input);  // → [B, width]

 private:
  // `places` [B, T]: where in the image each pixel stands; undefined: one after the other.
  at::Tensor embed(const at::Tensor& content, const at::Tensor& places);
  at::Tensor with_positions(const at::Tensor& x, const at::Tensor& places);
  at::Tensor other_scan(const at::Tensor& x, bool by_columns) const;

  ModelConfig config_;
  torch::nn::Embedding token_embedding_{nullptr};
  torch::nn::Linear value_embedding_{nullptr};
  at::Tensor class_embedding_, row_embedding_, column_embedding_;
  std::optional<PositionEmbedding> positions_;
  std::vector<std::shared_ptr<nn::Block>> blocks_;
  std::shared_ptr<nn::Norm> norm_;
};

class Classifier : public torch::nn::Module {
 public:
  // Throws UserError for a config that cannot be built.
  explicit Classifier(const ModelConfig& config);

  at::Tensor forward(const Sequences& first);  // → logits [B, classes]
  at::Tensor forward(const Sequences& first, const Sequences& second);

  const ModelConfig& config() const { return config_; }
  std::int64_t parameter_count() const;

 private:
  // One encoding for each sequence; of pairs the first ones, then the second ones, as one batch.
  at::Tensor normed(const at::Tensor& encodings);
  at::Tensor classify(const at::Tensor& features);

  ModelConfig config_;
  std::shared_ptr<Encoder> encoder_;
  torch::nn::BatchNorm1d pooled_norm_{nullptr};
  torch::nn::Linear hidden_{nullptr}, output_{nullptr};
};

}  // namespace cosformer::models
