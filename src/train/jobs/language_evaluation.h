// How well a language model predicts a text: per token, word and byte, and by how much it has read.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/batches/lm_masking.h"
#include "data/corpus/corpus.h"
#include "models/language/language_model.h"
#include "train/jobs/job.h"

namespace cosformer::train {

struct LanguageEvaluationOptions {
  at::Device device = at::kCPU;
  bool bfloat16 = false;
  std::int64_t rows = 8;     // stretches of the text that are read side by side
  std::int64_t window = 0;   // tokens read at once
  std::int64_t carry = 0;    // the state is carried over up to so many tokens, then begun anew; 0: never
  std::int64_t context = 0;  // without carrying: tokens of a window that are only read, not predicted
  bool documents_apart = false;
  StopRequest stop;                                  // may be empty
  std::function<void(std::size_t tokens)> progress;  // may be empty
};

// Tokens that were predicted from `first` to `last` tokens before them.
struct ContextRange {
  std::int64_t first = 0, last = 0;
  std::uint64_t tokens = 0;
  double nats = 0;  // together
};

struct LanguageEvaluation {
  double nats = 0;  // −ln p of the whole text
  data::TextCounts counts;
  bool carried = false;                  // the state went from window to window
  std::vector<ContextRange> by_context;  // ranges that double; those without tokens left out
  double seconds = 0;
  std::uint64_t batches = 0;

  double loss() const { return nats / static_cast<double>(counts.tokens); }
  double perplexity() const;       // per token
  double word_perplexity() const;  // per word, line ends counted as words
  double bits_per_byte() const;
};

// Every token of the part exactly once. Throws UserError when the state is to be carried and the model has none, or not
// as far; EvaluationStopped.
LanguageEvaluation evaluate_language(models::LanguageModel& model, const data::CorpusPart& part,
                                     const data::TokenizerPointer& tokenizer, const LanguageEvaluationOptions& options);

struct MaskedEvaluation {
  double loss = 0;      // nats of a masked token
  double accuracy = 0;  // share of the masked tokens that are found
  std::uint64_t tokens = 0, batches = 0;
  double seconds = 0;
};

// Of a masked model; the masks are always the same. EvaluationStopped.
MaskedEvaluation evaluate_masked(models::LanguageModel& model, const data::CorpusPart& part,
                                 const data::TokenizerPointer& tokenizer, const data::MaskOptions& masks,
                                 const LanguageEvaluationOptions& options);

PartResult part_result(const LanguageEvaluation& evaluation);
PartResult part_result(const MaskedEvaluation& evaluation);

}  // namespace cosformer::train
