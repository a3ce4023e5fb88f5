#include "data/readers/unlabelled/prediction_stream.h"

#include <algorithm>

namespace cosformer::data {
namespace {

constexpr std::size_t kAtOnce = 512;

}  // namespace

PredictionStream::PredictionStream(const std::string& path, const DataConfig& config, const DatasetInfo& info,
                                   const PredictionOptions& options)
    : name_(path == "-" ? "standard input" : path) {
  require_possible(config, options);
  if (is_by_line(path, config, info, options)) {
    source_ = std::make_unique<LineSource>(path);
    lines_ = std::make_unique<PredictionLines>(name_, config, info, RowPolicy{options.skip_bad_rows});
  } else {
    whole_ = read_prediction_input(path, config, info, options);
  }
}

std::optional<std::size_t> PredictionStream::size() const {
  return source_ ? std::nullopt : std::optional(whole_.dataset->size());
}

std::optional<PredictionInput> PredictionStream::next_lines() {
  const std::string content = source_->next();
  if (content.empty()) {
    if (given_ == 0) refuse_empty(name_, skipped_);
    return std::nullopt;
  }
  PredictionInput input = lines_->read(content);
  given_ += input.names.size();
  skipped_.add(input.report);
  return input;
}

std::optional<PredictionInput> PredictionStream::next() {
  if (source_) return next_lines();
  const std::size_t end = std::min(given_ + kAtOnce, whole_.dataset->size());
  if (given_ == end) return std::nullopt;
  PredictionInput input;
  if (given_ == 0) {
    input.note = whole_.note;
    input.report = whole_.report;
    input.unknown = whole_.unknown;
  }
  input.dataset = slice(whole_.dataset, given_, end);
  input.names.assign(whole_.names.begin() + static_cast<std::ptrdiff_t>(given_),
                     whole_.names.begin() + static_cast<std::ptrdiff_t>(end));
  given_ = end;
  return input;
}

}  // namespace cosformer::data
