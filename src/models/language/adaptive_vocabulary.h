// Input and output of large word vocabularies (adaptive input, Baevski & Auli 2019; adaptive softmax, Grave et al.
// 2017): ids are sorted by frequency and cut in bands. Words of later bands have narrower embeddings, and the output
// finds first the word of the first band or the band, then the word in it.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace cosformer::models {

struct AdaptiveVocabularyConfig {
  std::int64_t width = 0, vocabulary = 0;
  std::vector<std::int64_t> cutoffs;  // first ids of the second band and those after it
  std::int64_t divisor = 4;
  bool tied = true;  // the output's words are the input's; projections and bands are its own
  double deviation = 0.02;
};

class AdaptiveVocabulary : public torch::nn::Module {
 public:
  explicit AdaptiveVocabulary(const AdaptiveVocabularyConfig& config);

  at::Tensor embed(const at::Tensor& tokens);                              // [...] → [..., width]
  at::Tensor log_probabilities(const at::Tensor& hidden);                  // [..., width] → [..., vocabulary]
  at::Tensor losses(const at::Tensor& hidden, const at::Tensor& targets);  // as token_losses(); waits for the device

 private:
  struct Band {
    std::int64_t begin = 0, size = 0;
    at::Tensor embedding;   // [size, narrow]
    at::Tensor in_proj;     // [width, narrow]; the first band has none
    at::Tensor out_weight;  // [size, narrow]; the embedding where tied
    at::Tensor out_proj;    // [narrow, width]; the first band has none
  };
  at::Tensor head_weight() const;  // [first band's words + other bands, width]

  AdaptiveVocabularyConfig config_;
  std::vector<Band> bands_;
  at::Tensor band_weight_;  // [other bands, width]
};

}  // namespace cosformer::models
