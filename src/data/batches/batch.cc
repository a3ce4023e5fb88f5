#include "data/batches/batch.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::data {
namespace {

bool reads_tokens(const DatasetInfo& info, const BatchOptions& options) {
  const bool tokens =
      options.reading == Reading::kAsContent ? info.content == Content::kTokens : options.reading == Reading::kTokens;
  if (tokens && info.vocabulary == 0) {
    throw UserError(fmt::format("the data set '{}' holds real numbers; they cannot be read as tokens", info.name));
  }
  return tokens;
}

SequenceBatch collect(const std::vector<SequenceView>& views, const BatchOptions& options, bool tokens, float scale) {
  SequenceBatch batch;
  batch.layout = options.layout;
  batch.rows = static_cast<std::int64_t>(views.size());
  std::int64_t total = 0, longest = 0;
  for (const SequenceView& view : views) {
    const std::int64_t length = kept_length(static_cast<std::int64_t>(view.size), options);
    total += length;
    longest = std::max(longest, length);
    batch.lengths.push_back(static_cast<std::int32_t>(length));
  }
  const bool packed = options.layout == Layout::kPacked;
  batch.width = packed ? longest : padded_width(longest, options);
  const std::int64_t elements = packed ? total : batch.rows * batch.width;
  if (elements > std::numeric_limits<std::int32_t>::max()) {
    throw UserError(fmt::format("a batch has {} elements; expected fewer than 2^31: make it smaller", elements));
  }
  if (tokens) {
    batch.tokens.assign(static_cast<std::size_t>(elements), kPadToken);
  } else {
    batch.values.assign(static_cast<std::size_t>(elements), 0.0F);
  }
  if (packed) batch.offsets.push_back(0);
  std::int64_t place = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const auto length = static_cast<std::size_t>(batch.lengths[i]);
    if (tokens) {
      views[i].copy_token_ids(length, batch.tokens.data() + place);
    } else {
      views[i].copy_values(length, scale, batch.values.data() + place);
    }
    place += packed ? batch.lengths[i] : batch.width;
    if (packed) batch.offsets.push_back(static_cast<std::int32_t>(place));
  }
  return batch;
}

}  // namespace

Batch make_batch(const Dataset& dataset, std::span<const std::uint32_t> examples, const BatchOptions& options) {
  const DatasetInfo& info = dataset.info();
  const bool tokens = reads_tokens(info, options);
  Batch batch;
  batch.examples.assign(examples.begin(), examples.end());
  std::vector<SequenceView> first, second;
  for (const std::uint32_t index : examples) {
    const Example example = dataset.get(index);
    batch.labels.push_back(example.label);
    first.push_back(example.first);
    if (info.pairs) second.push_back(example.second);
  }
  batch.first = collect(first, options, tokens, info.value_scale);
  if (info.pairs) batch.second = collect(second, options, tokens, info.value_scale);
  return batch;
}

}  // namespace cosformer::data
