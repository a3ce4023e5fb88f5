#include "data/batches/lm_batches.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/random.h"

namespace cosformer::data {
namespace {

// A permutation of 0 ... size - 1 without a table, so that it is there at once for any corpus: a Feistel network on the
// next power of four, walked until it comes back into the range.
class Permutation {
 public:
  Permutation(std::uint64_t size, Random random) : size_(size) {
    while ((std::uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
    for (std::uint64_t& key : keys_) key = random.next();
  }

  std::uint64_t operator()(std::uint64_t index) const {
    do {
      index = encipher(index);
    } while (index >= size_);
    return index;
  }

 private:
  static constexpr std::size_t kRounds = 6;

  std::uint64_t encipher(std::uint64_t index) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = index >> half_bits_, right = index & mask;
    for (const std::uint64_t key : keys_) left = std::exchange(right, left ^ (mix_bits(right + key) & mask));
    return left << half_bits_ | right;
  }

  std::uint64_t size_;
  unsigned half_bits_ = 1;
  std::uint64_t keys_[kRounds];
};

// What the three kinds of batches share: cutting windows out of the part.
class WindowBatches : public LmBatches {
 public:
  WindowBatches(CorpusPart part, TokenizerPointer tokenizer, const LmOptions& options)
      : part_(std::move(part)), tokenizer_(std::move(tokenizer)), options_(options) {
    if (options.rows < 1 || options.width < 1 || options.rows > (std::int64_t{1} << 31) / options.width - 1) {
      throw UserError(fmt::format(
          "a batch of {} rows of {} tokens is not possible; expected at least one of each and less than 2^31 together",
          options.rows, options.width));
    }
  }

 protected:
  // A row: predictions first ... first + context + real - 1, of which the first `context` only show their inputs.
  struct Row {
    std::uint64_t first = 0;
    std::int64_t context = 0, real = 0;
    bool carried = false;
  };

  LmBatch start(StreamPosition position) const {
    if (position.batch >= batches(position.epoch)) {
      throw std::out_of_range(fmt::format("batch {} of an epoch with {}", position.batch, batches(position.epoch)));
    }
    LmBatch batch;
    batch.position = position;
    batch.next = after(position);
    batch.rows = options_.rows;
    batch.width = options_.width;
    const auto size = static_cast<std::size_t>(batch.rows * batch.width);
    batch.inputs.reserve(size);
    batch.targets.reserve(size);
    batch.offsets.push_back(0);
    return batch;
  }

  void add_row(const Row& row, LmBatch& batch) const {
    const auto begin = static_cast<std::int32_t>(batch.inputs.size());
    const auto used = static_cast<std::size_t>(row.context + row.real);
    const std::int32_t end = tokenizer_->end_of_document();
    // y[first - 1] ... y[first + used - 1]; before the part there is <eod>.
    std::vector<std::int32_t> tokens(used + 1, end);
    if (used > 0) {
      if (row.first > 0) {
        part_.read(row.first - 1, tokens);
      } else {
        part_.read(0, std::span(tokens).subspan(1));
      }
    }
    const auto padding = static_cast<std::size_t>(options_.width) - used;
    batch.inputs.insert(batch.inputs.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(used));
    batch.inputs.insert(batch.inputs.end(), padding, end);
    batch.targets.insert(batch.targets.end(), static_cast<std::size_t>(row.context), kNoTarget);
    batch.targets.insert(batch.targets.end(), tokens.begin() + 1 + row.context, tokens.end());
    batch.targets.insert(batch.targets.end(), padding, kNoTarget);
    batch.starts.push_back(row.first);
    batch.predictions += row.real;

    bool carried = row.carried;
    if (options_.documents_apart && used > 0) {
      std::vector<std::uint64_t> starts;
      part_.document_starts(row.first, row.first + used, starts);
      for (const std::uint64_t start : starts) {
        const auto place = begin + static_cast<std::int32_t>(start - row.first);
        if (place == begin) {
          carried = false;
        } else {
          batch.carried.push_back(carried);
          batch.offsets.push_back(place);
          carried = false;
        }
      }
    }
    batch.carried.push_back(carried);
    batch.offsets.push_back(static_cast<std::int32_t>(batch.inputs.size()));
  }

  // The shift of an epoch: less than a window, and less than what is left beside one batch.
  std::uint64_t shift(std::uint64_t seed, std::uint64_t epoch) const {
    const std::uint64_t spare = part_.tokens() - tokens_per_batch();
    return Random(seed, RandomStream::kWindowShift, epoch)
        .below(std::min(spare + 1, static_cast<std::uint64_t>(options_.width)));
  }

  std::uint64_t tokens_per_batch() const { return static_cast<std::uint64_t>(options_.rows * options_.width); }

  void require_one_batch() const {
    if (part_.tokens() >= tokens_per_batch()) return;
    throw UserError(
        fmt::format("a text of {} tokens is too short for a batch of {} rows of {}; give more text, or smaller batches",
                    part_.tokens(), options_.rows, options_.width));
  }

  const CorpusPart part_;
  const TokenizerPointer tokenizer_;
  const LmOptions options_;
};

class RandomWindows final : public WindowBatches {
 public:
  RandomWindows(CorpusPart part, TokenizerPointer tokenizer, const LmOptions& options, std::uint64_t seed)
      : WindowBatches(std::move(part), std::move(tokenizer), options), seed_(seed) {
    require_one_batch();
  }

  std::uint64_t batches(std::uint64_t epoch) const override {
    return windows(epoch) / static_cast<std::uint64_t>(options_.rows);
  }

  LmBatch at(StreamPosition position) const override {
    LmBatch batch = start(position);
    const Permutation order(windows(position.epoch), Random(seed_, RandomStream::kWindowOrder, position.epoch));
    const auto rows = static_cast<std::uint64_t>(options_.rows), width = static_cast<std::uint64_t>(options_.width);
    for (std::uint64_t row = 0; row < rows; ++row) {
      const std::uint64_t window = order(position.batch * rows + row);
      add_row({shift(seed_, position.epoch) + window * width, 0, options_.width, false}, batch);
    }
    return batch;
  }

 private:
  std::uint64_t windows(std::uint64_t epoch) const {
    return (part_.tokens() - shift(seed_, epoch)) / static_cast<std::uint64_t>(options_.width);
  }

  std::uint64_t seed_;
};

class Lanes final : public WindowBatches {
 public:
  Lanes(CorpusPart part, TokenizerPointer tokenizer, const LmOptions& options, std::uint64_t seed)
      : WindowBatches(std::move(part), std::move(tokenizer), options), seed_(seed) {
    require_one_batch();
  }

  std::uint64_t batches(std::uint64_t epoch) const override {
    return (part_.tokens() - shift(seed_, epoch)) / tokens_per_batch();
  }

  LmBatch at(StreamPosition position) const override {
    LmBatch batch = start(position);
    const auto rows = static_cast<std::uint64_t>(options_.rows), width = static_cast<std::uint64_t>(options_.width);
    const std::uint64_t begin = shift(seed_, position.epoch), lane = batches(position.epoch) * width;
    for (std::uint64_t row = 0; row < rows; ++row) {
      add_row({begin + row * lane + position.batch * width, 0, options_.width, position.batch > 0}, batch);
    }
    return batch;
  }

 private:
  std::uint64_t seed_;
};

class WholeStream final : public WindowBatches {
 public:
  WholeStream(CorpusPart part, TokenizerPointer tokenizer, const LmOptions& options, std::int64_t context)
      : WindowBatches(std::move(part), std::move(tokenizer), options), context_(context) {
    if (context < 0 || context >= options.width) {
      throw UserError(fmt::format("a context of {} tokens leaves none of a window of {} to predict; expected less",
                                  context, options.width));
    }
    if (part_.tokens() == 0) throw UserError("there is no text to evaluate on; give a validation or test part");
    const auto fresh = static_cast<std::uint64_t>(options.width - context);
    const std::uint64_t windows = (part_.tokens() + fresh - 1) / fresh;
    const auto rows = static_cast<std::uint64_t>(options.rows);
    batches_ = (windows + rows - 1) / rows;
  }

  std::uint64_t batches(std::uint64_t) const override { return batches_; }

  LmBatch at(StreamPosition position) const override {
    LmBatch batch = start(position);
    const auto fresh = static_cast<std::uint64_t>(options_.width - context_);
    for (std::uint64_t row = 0; row < static_cast<std::uint64_t>(options_.rows); ++row) {
      const std::uint64_t begin = std::min((row * batches_ + position.batch) * fresh, part_.tokens());
      const std::uint64_t real = std::min(fresh, part_.tokens() - begin);
      const std::uint64_t before = real == 0 ? 0 : std::min<std::uint64_t>(static_cast<std::uint64_t>(context_), begin);
      add_row({begin - before, static_cast<std::int64_t>(before), static_cast<std::int64_t>(real),
               context_ == 0 && position.batch > 0},
              batch);
    }
    return batch;
  }

 private:
  std::int64_t context_;
  std::uint64_t batches_ = 0;
};

}  // namespace

StreamPosition LmBatches::after(StreamPosition position) const {
  if (position.batch + 1 < batches(position.epoch)) return {position.epoch, position.batch + 1};
  return {position.epoch + 1, 0};
}

void LmBatches::require_position(StreamPosition position) const {
  if (position.batch < batches(position.epoch)) return;
  throw UserError(fmt::format(
      "cannot go on at batch {} of epoch {}: the epoch has {} batches; were the data or the batch options changed?",
      position.batch, position.epoch, batches(position.epoch)));
}

std::unique_ptr<LmBatches> random_windows(CorpusPart part, TokenizerPointer tokenizer, const LmOptions& options,
                                          std::uint64_t seed) {
  return std::make_unique<RandomWindows>(std::move(part), std::move(tokenizer), options, seed);
}

std::unique_ptr<LmBatches> lanes(CorpusPart part, TokenizerPointer tokenizer, const LmOptions& options,
                                 std::uint64_t seed) {
  return std::make_unique<Lanes>(std::move(part), std::move(tokenizer), options, seed);
}

std::unique_ptr<LmBatches> whole_stream(CorpusPart part, TokenizerPointer tokenizer, const LmOptions& options,
                                        std::int64_t context) {
  return std::make_unique<WholeStream>(std::move(part), std::move(tokenizer), options, context);
}

}  // namespace cosformer::data
