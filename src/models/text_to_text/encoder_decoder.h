// An encoder-decoder: a source text is read both ways, a target text written from left to right, each of its tokens
// seeing what is written and, by cross-attention, the source. Both texts share one embedding, which the output reads
// too.
//
// Sequences are token ids. A source ends in <eod>; a target's inputs begin with <eod>, its targets end in it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/modules/embedding.h>

#include "models/position_embedding.h"
#include "models/text_to_text/encoder_decoder_config.h"
#include "nn/decoder_block.h"

namespace cosformer::models {

// What an encoder has read.
struct EncodedSource {
  at::Tensor hidden;  // [B, S, width]
  at::Tensor mask;    // [B, S] bool, true = present, or undefined
};

// All that writing on needs: a state of the text written so far, and what cross-attention keeps of the source.
struct WritingState {
  nn::StreamClock clock;
  std::vector<nn::LayerState> layers;
  std::vector<nn::MechanismState> memories;
};

class EncoderDecoder : public torch::nn::Module {
 public:
  // Throws UserError for a config that cannot be built.
  explicit EncoderDecoder(const EncoderDecoderConfig& config);

  // tokens [B, S] int32 or int64; mask [B, S] bool, true = present, or undefined.
  EncodedSource encode(const at::Tensor& tokens, const at::Tensor& mask);

  // The decoder on whole texts: inputs [B, T] → hidden [B, T, width], after the last norm; `mask` as above.
  at::Tensor hidden(const at::Tensor& inputs, const at::Tensor& mask, const EncodedSource& source);

  // hidden [..., width] → [..., vocabulary], float32.
  at::Tensor logits(const at::Tensor& hidden);
  // −ln p(target) of each token, [B, T] float32; 0 where the target is kNoTarget (lm_losses.h).
  at::Tensor losses(const at::Tensor& hidden, const at::Tensor& targets);

  // Writing token by token. Throws UserError where the decoder's attention carries no state; hidden() of all that is
  // written then says the same.
  WritingState begin_writing(const EncodedSource& source);
  // The next tokens [B, T] of each text, behind those of `state`, which is advanced. Throws UserError beyond the
  // greatest length.
  at::Tensor write_hidden(const at::Tensor& tokens, WritingState& state);

  const EncoderDecoderConfig& config() const { return config_; }
  std::int64_t parameter_count() const;
  at::Device device() const { return encoder_norm_->weight.device(); }

 private:
  at::Tensor embed(const at::Tensor& tokens, const at::Tensor& positions);  // undefined positions: from 0 on
  void require_length(std::int64_t tokens) const;

  EncoderDecoderConfig config_;
  torch::nn::Embedding token_embedding_{nullptr};
  std::optional<PositionEmbedding> positions_;
  std::vector<std::shared_ptr<nn::Block>> encoder_blocks_;
  std::vector<std::shared_ptr<nn::DecoderBlock>> decoder_blocks_;
  std::shared_ptr<nn::Norm> encoder_norm_, decoder_norm_;
};

// Whether the file is there and holds such a model.
bool is_encoder_decoder(const std::string& path);

// In evaluation mode, on the CPU. Throws UserError when the file is not one.
std::shared_ptr<EncoderDecoder> load_encoder_decoder(const std::string& path);

}  // namespace cosformer::models
