// Batches for language models, cut from a part of a corpus as plain arrays.
//
// A part of N tokens y[0] ... y[N-1] gives N predictions: y[i] from the input x[i] = y[i-1] and what came before it;
// x[0] is <eod>. So each token is predicted exactly once, documents' first ones from the <eod> of the document before.
// When documents are kept apart, a document's sequence begins at the input from which its first token is predicted.
//
// Every batch is a pure function of the options, the seed and its position. A run that is started again asks for the
// position after its last one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batches/batch.h"
#include "data/corpus/corpus.h"

namespace cosformer::data {

inline constexpr std::int32_t kNoTarget = -100;  // nothing is to be predicted here; torch's default to ignore

struct LmBatch {
  StreamPosition position, next;
  std::int64_t rows = 0, width = 0;
  std::vector<std::int32_t> inputs;   // rows * width
  std::vector<std::int32_t> targets;  // rows * width; kNoTarget behind the end of the part (inputs there are <eod>) and
                                      // where tokens are context only
  // The sequences that do not see each other, end to end over all rows ("cu_seqlens"): first 0, last rows * width.
  // Every row begins one; where documents are kept apart, every document does.
  std::vector<std::int32_t> offsets;
  // For each of them, whether it goes on where the same row ended in the batch before (carried state), 1 or 0. Only the
  // first sequence of a row can.
  std::vector<std::uint8_t> carried;
  std::vector<std::uint64_t> starts;  // of each row: i of its first prediction
  std::int64_t predictions = 0;       // targets that are not kNoTarget
};

struct LmOptions {
  std::int64_t rows = 8;
  std::int64_t width = 1024;
  bool documents_apart = false;
};

class LmBatches {
 public:
  virtual ~LmBatches() = default;
  // At least 1.
  virtual std::uint64_t batches(std::uint64_t epoch) const = 0;
  // position.batch < batches(position.epoch), else std::out_of_range. May be called from several threads.
  virtual LmBatch at(StreamPosition position) const = 0;

  StreamPosition after(StreamPosition position) const;
  // Throws UserError when a run cannot go on there: the data or the options were changed.
  void require_position(StreamPosition position) const;
};

// For training: windows side by side that cover the part but for a random beginning of less than a window, in random
// order, both anew in each epoch. What does not fill a batch at the end of an epoch is left out. Throws UserError when
// the part has too few tokens for one batch.
std::unique_ptr<LmBatches> random_windows(CorpusPart part, TokenizerPointer tokenizer, const LmOptions& options,
                                          std::uint64_t seed);

// For training with carried state: each row reads its own stretch of the part in order, from batch to batch. The
// beginning moves by less than a window from epoch to epoch. Throws UserError as above.
std::unique_ptr<LmBatches> lanes(CorpusPart part, TokenizerPointer tokenizer, const LmOptions& options,
                                 std::uint64_t seed);

// For evaluation: every prediction exactly once, in order; one epoch. With one row it is the whole stream with carried
// state; with more, each row has a stretch of it. `context`: each window also reads that many inputs before its own, as
// kNoTarget, for models that carry no state (none is `carried` then; the width includes them).
std::unique_ptr<LmBatches> whole_stream(CorpusPart part, TokenizerPointer tokenizer, const LmOptions& options,
                                        std::int64_t context = 0);

}  // namespace cosformer::data
