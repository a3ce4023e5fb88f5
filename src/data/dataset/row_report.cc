#include "data/dataset/row_report.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kReasonsKept = 5;
constexpr std::size_t kQuotedLength = 40;

}  // namespace

std::string excerpt(std::string_view text) {
  std::size_t length = std::min(text.size(), kQuotedLength);
  // Not inside a character: its bytes after the first are 10xxxxxx.
  while (length > 0 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  std::string result = "'";
  for (const char c : text.substr(0, length)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return result + (text.size() > length ? "...'" : "'");
}

void LoadReport::add(const LoadReport& other) {
  rows_used += other.rows_used;
  rows_skipped += other.rows_skipped;
  for (const std::string& reason : other.first_reasons) {
    if (first_reasons.size() < kReasonsKept) first_reasons.push_back(reason);
  }
  empty_images += other.empty_images;
  texts_cut += other.texts_cut;
}

void refuse_file(const std::string& path, const std::string& reason) {
  throw UserError(fmt::format("cannot read '{}': {}", path, reason));
}

void RowReporter::bad(const std::string& path, std::string_view unit, std::uint64_t number, const std::string& reason) {
  bad_at(fmt::format("'{}' {} {}", path, std::string(unit), number), reason);
}

void RowReporter::bad_file(const std::string& path, const std::string& reason) {
  bad_at("'" + path + "'", reason);
}

void RowReporter::bad_at(const std::string& place, const std::string& reason) {
  const std::string message = place + ": " + reason;
  if (!policy_.skip_bad_rows) throw UserError(message + ". Mend it, or leave such rows out with --skip-bad-rows");
  ++report_.rows_skipped;
  if (report_.first_reasons.size() < kReasonsKept) report_.first_reasons.push_back(message);
}

Loaded RowReporter::finish(const std::string& path, DatasetBuilder& builder, DatasetInfo info) {
  report_.rows_used = builder.size();
  if (builder.size() == 0) {
    const std::string first = report_.first_reasons.empty() ? "" : "; the first: " + report_.first_reasons.front();
    refuse_file(path, fmt::format("it holds no usable row ({} were skipped{})", report_.rows_skipped, first));
  }
  return {builder.finish(std::move(info)), std::move(report_), std::move(lines_)};
}

}  // namespace cosformer::data
