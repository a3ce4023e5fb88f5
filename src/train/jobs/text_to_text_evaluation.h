// How well an encoder-decoder does: what it thinks of the right answers, and how many it gives.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/tokenizers/tokenizer.h"
#include "models/text_to_text/encoder_decoder.h"
#include "train/jobs/evaluate.h"

namespace cosformer::train {

struct TextToTextEvaluation {
  double nats = 0;           // −ln p of all targets, the <eod> behind each included
  std::uint64_t tokens = 0;  // of them
  std::uint64_t found = 0;   // tokens that are the likeliest, given the right ones before them
  std::uint64_t examples = 0, batches = 0;
  std::uint64_t written = 0, right = 0;  // answers, and those that are the target token for token
  double seconds = 0;

  double loss() const { return nats / static_cast<double>(tokens); }
  double perplexity() const;  // per token
  double token_accuracy() const { return static_cast<double>(found) / static_cast<double>(tokens); }
  double exact_match() const { return static_cast<double>(right) / static_cast<double>(written); }
};

// The examples whose answers are written: `count` of a part, always the same ones.
data::DatasetPointer written_examples(const data::DatasetPointer& pairs, std::int64_t count);

// Every example's loss; answers to written_examples(pairs, write). Throws EvaluationStopped.
TextToTextEvaluation evaluate_text_to_text(models::EncoderDecoder& model, const data::DatasetPointer& pairs,
                                           const data::Tokenizer& tokenizer, std::int64_t write,
                                           const EvaluationOptions& options,
                                           const std::function<void(std::size_t examples)>& progress = {});

// An answer to each source, in the order of the data set, which may be of pairs or of sources alone. Throws
// EvaluationStopped.
std::vector<std::vector<std::int32_t>> write_answers(models::EncoderDecoder& model, const data::DatasetPointer& sources,
                                                     const data::Tokenizer& tokenizer, const EvaluationOptions& options,
                                                     const std::function<void(std::size_t examples)>& progress = {});

PartResult part_result(const TextToTextEvaluation& evaluation);

}  // namespace cosformer::train
