#include "data/corpus/corpus_tokens.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/formats/white_space.h"

namespace cosformer::data {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kSegmentBytes = 1024, kMostSegmentBytes = 4096;

// Where the first segment of a text ends: before a newline, past a kilobyte.
std::size_t segment_size(std::string_view text, TextCuts cuts) {
  if (cuts == TextCuts::kAtDocuments || text.size() <= kSegmentBytes) return text.size();
  // No further than it matters: else a line of megabytes would be looked through again for each of its segments.
  if (cuts == TextCuts::kAnywhere) text = text.substr(0, kMostSegmentBytes);
  return std::min(text.find('\n', kSegmentBytes), text.size());
}

class BlockTokens {
 public:
  BlockTokens(const Tokenizer& tokenizer, TokenBlock& result) : tokenizer_(tokenizer), result_(result) {}

  // A document, or the part of one that lies in this block: whether it begins and ends here.
  void add(std::string_view text, bool begins, bool ends, char byte_before) {
    if (begins) ++counts_.documents;
    do {
      const std::string_view segment = text.substr(0, segment_size(text, tokenizer_.cuts()));
      text.remove_prefix(segment.size());
      tokenizer_.encode(segment, result_.ids);
      const std::int32_t end = tokenizer_.end_of_document();
      if (ends && text.empty() && (result_.ids.empty() || result_.ids.back() != end)) result_.ids.push_back(end);
      count(segment, byte_before);
      if (!segment.empty()) byte_before = segment.back();
      counts_.tokens = result_.ids.size();
      result_.ends.push_back(counts_);
    } while (!text.empty());
  }

 private:
  void count(std::string_view text, char before) {
    counts_.bytes += text.size();
    for (const char c : text) {
      counts_.words += is_space(before) && !is_space(c);
      counts_.lines += c == '\n';
      before = c;
    }
  }

  const Tokenizer& tokenizer_;
  TokenBlock& result_;
  TextCounts counts_;
};

// Calls line(begin, end) for each line, without its newline.
template <typename Line>
void for_each_line(std::string_view text, Line&& line) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    line(begin, end);
    begin = end + 1;
  }
}

void add_blank_line_documents(const TextBlock& block, BlockTokens& tokens) {
  const std::string_view text = block.text;
  bool inside = block.continues_before, begins = false;
  std::size_t document = 0;
  for_each_line(text, [&](std::size_t begin, std::size_t end) {
    // A line that is cut by the block's borders belongs to the document that goes on there.
    const bool cut = (begin == 0 && block.continues_before) || (end == text.size() && block.continues_after);
    const bool blank = !cut && is_blank(text.substr(begin, end - begin));
    if (!inside && !blank) {
      inside = begins = true;
      document = begin;
    } else if (inside && blank) {
      tokens.add(text.substr(document, begin - 1 - document), begins, true, begins ? '\n' : block.byte_before);
      inside = begins = false;
    }
  });
  if (inside) tokens.add(text.substr(document), begins, !block.continues_after, begins ? '\n' : block.byte_before);
}

}  // namespace

void for_each_row(const TextBlock& block, const std::string& path, const std::string& text_field, RowReporter& reporter,
                  const std::function<void(const std::string& text)>& use) {
  const std::string_view text = block.text;
  std::uint64_t number = block.first_line;
  for_each_line(text, [&](std::size_t begin, std::size_t end) {
    const std::uint64_t line = number++;
    const std::string_view row = text.substr(begin, end - begin);
    if (is_blank(row)) return;
    const Json object = Json::parse(row, nullptr, false);
    if (!object.is_object()) {
      return reporter.bad(path, "line", line,
                          object.is_discarded()
                              ? "it is not valid JSON; expected one object on the line"
                              : fmt::format("it is of type {}; expected a JSON object", object.type_name()));
    }
    const auto found = object.find(text_field);
    if (found == object.end()) {
      return reporter.bad(path, "line", line,
                          fmt::format("the object has no key {} for its text", excerpt(text_field)));
    }
    if (!found->is_string()) {
      return reporter.bad(
          path, "line", line,
          fmt::format("the value of {} is of type {}; expected a text", excerpt(text_field), found->type_name()));
    }
    const auto& document = found->get_ref<const std::string&>();
    if (document.empty()) return reporter.bad(path, "line", line, "the text is empty; expected at least one character");
    use(document);
  });
}

TokenBlock tokenize_block(const TextBlock& block, const std::string& path, const CorpusOptions& options,
                          const Tokenizer& tokenizer) {
  TokenBlock result;
  BlockTokens tokens(tokenizer, result);
  if (block.jsonl) {
    RowReporter reporter(options.rows);
    try {
      for_each_row(block, path, options.text_field, reporter, [&](const std::string& text) {
        tokens.add(text, true, true, '\n');
        ++result.report.rows_used;
      });
    } catch (const UserError& error) {
      result.problem = error.what();
    }
    result.report.rows_skipped = reporter.report().rows_skipped;
    result.report.first_reasons = reporter.report().first_reasons;
    return result;
  }
  switch (options.documents) {
    case DocumentRule::kBlankLines: add_blank_line_documents(block, tokens); break;
    case DocumentRule::kLines:
      for_each_line(block.text, [&](std::size_t begin, std::size_t end) {
        const std::string_view line = std::string_view(block.text).substr(begin, end - begin);
        if (!is_blank(line)) tokens.add(line, true, true, '\n');
      });
      break;
    default: tokens.add(block.text, !block.continues_before, !block.continues_after, block.byte_before);
  }
  return result;
}

}  // namespace cosformer::data
