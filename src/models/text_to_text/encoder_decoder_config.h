// An encoder-decoder as data: what a model is (config.h), and what its decoder has besides.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "models/config.h"
#include "models/model_size.h"

namespace cosformer::models {

// What users say of a decoder.
struct DecoderOptions {
  // Mechanisms of the decoder's causal self-attention and of its cross-attention; "same": the encoder's, with its
  // options. Another one is as its name stands for.
  std::string attention = "same", cross_attention = "same";
  bool decay = false;       // a learned decay in the decoder's self-attention; the preset says where nobody does
  std::int64_t layers = 0;  // 0: as many as the encoder has
  std::int64_t decode_examples = 200;  // written at an evaluation while training, to count those that are right
};

struct EncoderDecoderConfig {
  // The encoder, and what both have. input.vocabulary and input.max_length count; the latter is of either text, with
  // the <eod> at its end.
  ModelConfig model;
  std::int64_t decoder_layers = 0;
  nn::AttentionConfig decoder, cross;  // the decoder's causal self-attention, and its cross-attention
  std::string tokenizer;               // its hash; empty: not known
};

// Keys "text_to_text.*".
void add_settings(Settings& settings, DecoderOptions& options);

// What the attention's names imply, for options that nobody has set. `model` has its own presets already.
void apply_preset(DecoderOptions& options, const ModelConfig& model, const Settings& settings);

EncoderDecoderConfig encoder_decoder_config(const ModelConfig& model, const DecoderOptions& options,
                                            const std::string& tokenizer);

// The model's name in tables: the encoder's attention, and the decoder's where they have others.
std::string label_of(const EncoderDecoderConfig& config);

// Throws UserError for what cannot be built.
void require_possible(const EncoderDecoderConfig& config);
ModelSize size_of(const EncoderDecoderConfig& config);

// The config as the metadata of a file, and back. The first key tells that a file holds such a model.
inline constexpr const char* kEncoderDecoderKey = "cosformer.encoder_decoder";
std::map<std::string, std::string> to_metadata(const EncoderDecoderConfig& config);
EncoderDecoderConfig encoder_decoder_config_from(const std::map<std::string, std::string>& metadata,
                                                 const std::string& path);

}  // namespace cosformer::models
