// A language model: tokens in, for each what comes next (causal, autoregressive) or what stands there (masked).
//
// A causal one also reads a text in stretches of any lengths with a carried state: what comes out is the same.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include "models/language/adaptive_vocabulary.h"
#include "models/language/language_config.h"
#include "models/language/lm_state.h"
#include "models/position_embedding.h"
#include "nn/block.h"

namespace cosformer::models {

class LanguageModel : public torch::nn::Module {
 public:
  // Throws UserError for a config that cannot be built.
  explicit LanguageModel(const LanguageModelConfig& config);

  // tokens [B, T] int32 or int64 → hidden [B, T, width], after the last norm. `mask` [B, T] bool, true = present, or
  // undefined. `cu_seqlens` [sequences + 1] over all B·T tokens, or undefined: sequences that do not see each other,
  // one of which begins with each row. Not both. Throws UserError where the attention cannot.
  at::Tensor hidden(const at::Tensor& tokens, const at::Tensor& cu_seqlens = {}, const at::Tensor& mask = {});

  // The logarithm of probabilities up to a number per token: hidden [..., width] → [..., vocabulary], float32.
  at::Tensor logits(const at::Tensor& hidden);

  // −ln p(target) of each token, [B, T] float32; 0 where the target is kNoTarget (lm_losses.h). Logits are never whole.
  at::Tensor losses(const at::Tensor& hidden, const at::Tensor& targets);

  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& cu_seqlens = {}) {
    return logits(hidden(tokens, cu_seqlens));
  }
  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& targets, const at::Tensor& cu_seqlens = {}) {
    return losses(hidden(tokens, cu_seqlens), targets);
  }

  // Streams. A fresh state; throws UserError where the model cannot read a text stretch by stretch.
  LmState empty_state(std::int64_t batch) const;
  // The next tokens [B, T] of each row's text, after those that `state`, which is advanced, remembers. Throws
  // UserError, the state then being as it was, when there would be more than longest_stream(). Gradients flow through
  // the state.
  at::Tensor stream_hidden(const at::Tensor& tokens, LmState& state);
  at::Tensor stream(const at::Tensor& tokens, LmState& state) { return logits(stream_hidden(tokens, state)); }
  at::Tensor stream_loss(const at::Tensor& tokens, const at::Tensor& targets, LmState& state) {
    return losses(stream_hidden(tokens, state), targets);
  }
  // logits() of what follows the last token of each text, hidden [B, width]. On the CPU these, and stream_hidden() of
  // one token each, give a text the same bits whatever texts are beside it; so far as its attention does, that is.
  at::Tensor next_logits(const at::Tensor& hidden);
  // The most tokens that a text may have; nothing: any number.
  std::optional<std::int64_t> longest_stream() const;

  // Whether losses() waits for the device, so that no graph of a step can be captured.
  bool losses_wait() const { return vocabulary_ != nullptr; }

  const LanguageModelConfig& config() const { return config_; }
  std::int64_t parameter_count() const;
  at::Device device() const { return norm_->weight.device(); }

 private:
  at::Tensor embed(const at::Tensor& tokens, const at::Tensor& positions);  // undefined positions: from 0 on
  const at::Tensor& output_weight() const;

  LanguageModelConfig config_;
  torch::nn::Embedding token_embedding_{nullptr};
  torch::nn::Linear output_{nullptr};               // where it is not tied
  std::shared_ptr<AdaptiveVocabulary> vocabulary_;  // in place of both, with cut-offs
  std::optional<PositionEmbedding> positions_;
  std::vector<std::shared_ptr<nn::Block>> blocks_;
  std::shared_ptr<nn::Norm> norm_;
};

}  // namespace cosformer::models
