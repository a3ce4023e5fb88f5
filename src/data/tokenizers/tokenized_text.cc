#include "data/tokenizers/tokenized_text.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "base/parallel.h"
#include "data/dataset/array_dataset.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kExamplesAtOnce = 256;

struct Storage {
  std::vector<std::int32_t> labels;
  std::vector<std::uint64_t> ends;
  std::vector<std::int32_t> tokens;
};

void add_sequence(const SequenceView& text, const Tokenizer& tokenizer, std::int64_t max_length, Storage& storage) {
  const std::size_t begin = storage.tokens.size();
  tokenizer.encode(std::string_view(static_cast<const char*>(text.data), text.size), storage.tokens);
  // Models expect at least one token; a text of white space has no words.
  if (storage.tokens.size() == begin) storage.tokens.push_back(tokenizer.end_of_document());
  if (max_length > 0) {
    storage.tokens.resize(std::min(storage.tokens.size(), begin + static_cast<std::size_t>(max_length)));
  }
  storage.ends.push_back(storage.tokens.size());
}

}  // namespace

bool is_text(const Dataset& dataset) {
  const DatasetInfo& info = dataset.info();
  return info.content == Content::kTokens && info.vocabulary == kByteVocabulary && info.width == 0 &&
         (dataset.size() == 0 || dataset.get(0).first.type == ElementType::kU8);
}

DatasetPointer tokenize_dataset(const DatasetPointer& text, const Tokenizer& tokenizer, std::int64_t max_length,
                                unsigned threads) {
  DatasetInfo info = text->info();
  if (!is_text(*text)) {
    throw UserError(
        fmt::format("the data set '{}' is not text: a tokenizer cannot read it; give a task of texts", info.name));
  }
  std::vector<Storage> pieces((text->size() + kExamplesAtOnce - 1) / kExamplesAtOnce);
  run_pieces(pieces.size(), thread_count(threads), [&](std::size_t piece) {
    const std::size_t end = std::min(text->size(), (piece + 1) * kExamplesAtOnce);
    for (std::size_t i = piece * kExamplesAtOnce; i < end; ++i) {
      const Example example = text->get(i);
      add_sequence(example.first, tokenizer, max_length, pieces[piece]);
      if (info.pairs) add_sequence(example.second, tokenizer, max_length, pieces[piece]);
      pieces[piece].labels.push_back(example.label);
    }
  });

  auto all = std::make_shared<Storage>();
  std::uint64_t longest = 0;
  for (Storage& piece : pieces) {
    const std::uint64_t before = all->tokens.size();
    for (const std::uint64_t end : piece.ends) {
      longest = std::max(longest, before + end - (all->ends.empty() ? 0 : all->ends.back()));
      all->ends.push_back(before + end);
    }
    all->tokens.insert(all->tokens.end(), piece.tokens.begin(), piece.tokens.end());
    all->labels.insert(all->labels.end(), piece.labels.begin(), piece.labels.end());
    piece = {};
  }
  info.vocabulary = static_cast<std::int64_t>(tokenizer.vocabulary()) + kFirstToken;
  info.max_length = static_cast<std::int64_t>(longest);
  const ArrayDataset::Arrays arrays{ElementType::kI32, all->labels, all->ends,
                                    reinterpret_cast<const std::byte*>(all->tokens.data())};
  return std::make_shared<ArrayDataset>(std::move(info), arrays, std::move(all));
}

}  // namespace cosformer::data
