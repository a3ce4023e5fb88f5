// The likeliest next token, again and again: how an encoder-decoder answers.
#pragma once

#include <cstdint>
#include <vector>

#include "models/text_to_text/encoder_decoder.h"

namespace cosformer::models {

struct GreedyOptions {
  std::int32_t end = 0;         // <eod>: what a text begins from and ends with
  std::int64_t max_tokens = 0;  // of an answer, its end not counted; 0: as many as the model can
};

// An answer to each source of [B, S] tokens with its mask, without the <eod> that ends it; one that was not ended is
// cut. Each token costs the same where the decoder's attention carries a state; otherwise all that is written is read
// again for the next.
std::vector<std::vector<std::int32_t>> write_greedily(EncoderDecoder& model, const at::Tensor& source,
                                                      const at::Tensor& mask, const GreedyOptions& options);

}  // namespace cosformer::models
