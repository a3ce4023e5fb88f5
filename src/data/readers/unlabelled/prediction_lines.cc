#include "data/readers/unlabelled/prediction_lines.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "data/readers/text_encoding.h"
#include "data/tasks/listops/listops.h"

namespace cosformer::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The published files have the value behind a tab; it is computed here.
void add_expression(DatasetBuilder& builder, std::string_view line) {
  const std::vector<listops::Symbol> symbols = listops::parse(line.substr(0, line.find('\t')));
  builder.add(std::span<const listops::Symbol>(symbols), listops::evaluate(symbols));
}

void add_text(DatasetBuilder& builder, std::string_view line, bool pairs, std::size_t most) {
  const auto cut = [&](std::string_view text) { return most == 0 ? text : text.substr(0, most); };
  const std::size_t tab = pairs ? line.find('\t') : line.size();
  if (tab == std::string_view::npos || tab == 0 || (pairs && tab + 1 == line.size())) {
    throw UserError(fmt::format("it is {}; expected two texts with a tab between them", excerpt(line)));
  }
  builder.add_pair(cut(line.substr(0, tab)), pairs ? cut(line.substr(tab + 1)) : std::string_view(), kNoLabel);
}

}  // namespace

PredictionLines::PredictionLines(std::string name, const DataConfig& config, const DatasetInfo& info, RowPolicy rows)
    : name_(std::move(name)), config_(config), info_(info), rows_(rows) {}

PredictionInput PredictionLines::read(std::string_view content) {
  if (line_ == 0) refuse_wide_text(name_, content);
  if (line_ == 0 && content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  const bool listops = config_.task == "listops";
  const auto most = static_cast<std::size_t>(effective_max_length(config_));
  DatasetBuilder builder(ElementType::kU8, info_.pairs);
  RowReporter reporter(rows_);
  PredictionInput input;
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t before = builder.size();
    ++line_;
    if (line.find_first_not_of(" \t") != std::string_view::npos) {
      try {
        if (listops) {
          add_expression(builder, line);
        } else {
          add_text(builder, line, info_.pairs, most);
        }
      } catch (const UserError& error) {
        reporter.bad(name_, "line", line_, error.what());
      }
    }
    if (builder.size() > before) {
      input.names.push_back(std::to_string(line_));
    } else {
      input.gaps.push_back({before, std::to_string(line_)});
    }
  }
  if (builder.size() == 0) {
    input.report = reporter.report();
    return input;
  }
  DatasetInfo info = info_;
  info.provenance.clear();
  Loaded loaded = reporter.finish(name_, builder, std::move(info));
  input.dataset = std::move(loaded.dataset);
  input.report = std::move(loaded.report);
  return input;
}

void refuse_empty(const std::string& name, const LoadReport& report) {
  const std::string first = report.first_reasons.empty() ? "" : "; the first: " + report.first_reasons.front();
  refuse_file(name, fmt::format("it holds no usable row ({} were skipped{})", report.rows_skipped, first));
}

}  // namespace cosformer::data
