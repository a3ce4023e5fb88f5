#include "cli/runs/answered_inputs.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "base/table.h"

namespace cosformer::cli {

AnsweredInputs::AnsweredInputs(const PredictOptions& options, const data::DataConfig& config,
                               const data::DatasetInfo& info)
    : reading_{options.format, options.skip_bad_rows, options.labelled},
      stream_(options.input, config, info, reading_),
      left_(options.first > 0 ? static_cast<std::size_t>(options.first) : std::numeric_limits<std::size_t>::max()) {}

std::optional<data::PredictionInput> AnsweredInputs::next() {
  if (left_ == 0) return std::nullopt;
  std::optional<data::PredictionInput> input = stream_.next();
  if (!input) return input;
  if (!input->note.empty()) std::fprintf(stderr, "note: %s\n", input->note.c_str());
  report_.add(input->report);
  unknown_.rows += input->unknown.rows;
  for (const std::string& name : input->unknown.names) unknown_.names.push_back(name);
  if (input->dataset && input->dataset->size() > left_) {
    input->dataset = data::slice(input->dataset, 0, left_);
    input->names.resize(left_);
    std::erase_if(input->gaps, [&](const data::PredictionGap& gap) { return gap.before >= left_; });
  }
  left_ -= input->names.size();
  return input;
}

void AnsweredInputs::in_order(const data::PredictionInput& input, const std::function<void(std::size_t)>& answer,
                              const std::function<void(const std::string&)>& gap) {
  auto next_gap = input.gaps.begin();
  const auto gaps_before = [&](std::size_t example) {
    for (; next_gap != input.gaps.end() && next_gap->before <= example; ++next_gap) gap(next_gap->name);
  };
  for (std::size_t example = 0; example < input.names.size(); ++example) {
    gaps_before(example);
    answer(example);
  }
  gaps_before(input.names.size());
  std::fflush(stdout);
}

void AnsweredInputs::report() const {
  const auto number = [](std::uint64_t value) { return with_commas(static_cast<long long>(value)); };
  if (report_.rows_skipped > 0) {
    std::fprintf(stderr, "skipped %s bad row%s; the first: %s\n", number(report_.rows_skipped).c_str(),
                 report_.rows_skipped == 1 ? "" : "s",
                 report_.first_reasons.empty() ? "" : report_.first_reasons.front().c_str());
  }
  if (unknown_.rows > 0) {
    std::string names;
    for (const std::string& name : unknown_.names) names += (names.empty() ? "" : ", ") + data::excerpt(name);
    std::fprintf(stderr, "%s row%s a label that the model does not know (%s) and %s counted as without one\n",
                 number(unknown_.rows).c_str(), unknown_.rows == 1 ? " has" : "s have", names.c_str(),
                 unknown_.rows == 1 ? "is" : "are");
  }
}

}  // namespace cosformer::cli
