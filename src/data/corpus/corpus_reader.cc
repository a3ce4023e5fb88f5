#include "data/corpus/corpus_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/white_space.h"
#include "data/readers/text_encoding.h"

namespace cosformer::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

bool is_jsonl(const std::string& path) {
  std::string_view name = path;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

BlockReader::BlockReader(std::vector<std::string> files, DocumentRule rule, TextCuts cuts, std::size_t block_bytes,
                         std::uint64_t longest)
    : files_(std::move(files)),
      rule_(rule),
      cuts_(cuts),
      block_bytes_(block_bytes),
      wanted_(block_bytes),
      longest_(longest) {}

BlockReader::~BlockReader() = default;

std::uint64_t BlockReader::consumed() const {
  return finished_bytes_ + (file_ ? file_->consumed() : 0);
}

void BlockReader::open_next_file() {
  const std::string& path = files_[next_file_++];
  file_ = std::make_unique<UnpackedFile>(path);
  jsonl_ = is_jsonl(path);
  at_end_ = false;
  line_ = 1;
  wanted_ = std::max(block_bytes_, kByteOrderMark.size());
  fill();
  refuse_wide_text(path, buffer_);
  if (buffer_.starts_with(kByteOrderMark)) buffer_.erase(0, kByteOrderMark.size());
  if (jsonl_) continues_ = false;
}

void BlockReader::fill() {
  if (at_end_ || buffer_.size() >= wanted_) return;
  const std::size_t before = buffer_.size();
  buffer_.resize(wanted_);
  const std::size_t got = file_->read(buffer_.data() + before, wanted_ - before);
  at_end_ = got < wanted_ - before;
  buffer_.resize(before + got);
}

std::size_t BlockReader::find_cut(bool& continues) const {
  const std::string_view text = buffer_;
  const std::size_t newline = text.rfind('\n');
  continues = false;
  if (jsonl_ || rule_ == DocumentRule::kLines) return newline == std::string_view::npos ? 0 : newline + 1;
  if (rule_ == DocumentRule::kBlankLines) {
    // The last whole line that is blank ends a document, or follows such a line.
    for (std::size_t end = newline; end != std::string_view::npos && end > 0;) {
      const std::size_t before = text.rfind('\n', end - 1);
      if (before == std::string_view::npos) {
        if (!continues_ && is_blank(text.substr(0, end))) return end + 1;
        break;
      }
      if (is_blank(text.substr(before, end - before))) return end + 1;
      end = before;
    }
  }
  if (cuts_ == TextCuts::kAtDocuments) return 0;
  continues = true;
  // The newline stays with what follows: only then is it known whether the document ends there.
  if (newline != std::string_view::npos && newline > 0) return newline;
  if (cuts_ != TextCuts::kAnywhere) return 0;
  // A line that is cut must be known not to be blank.
  const bool open = rule_ == DocumentRule::kBlankLines && is_blank(text.substr(newline == 0 ? 1 : 0));
  return open ? 0 : text.size();
}

void BlockReader::refuse_long_piece() const {
  const bool lines = jsonl_ || rule_ == DocumentRule::kLines || cuts_ != TextCuts::kAtDocuments;
  const bool by_tokenizer = !jsonl_ && rule_ != DocumentRule::kLines && cuts_ != TextCuts::kAnywhere;
  throw UserError(
      fmt::format("cannot read '{}': a {} in it is longer than {} MB, and is tokenised as one; cut it into several{} "
                  "or raise data.max_line_megabytes (of cosformer data: --max-line-megabytes)",
                  files_[next_file_ - 1], lines ? "line" : "document", longest_ >> 20,
                  by_tokenizer ? ", take data.tokenizer=bytes, which cuts anywhere," : ""));
}

void BlockReader::take(std::size_t size, bool continues, TextBlock& block) {
  block.file = next_file_ - 1;
  block.jsonl = jsonl_;
  block.first_line = line_;
  block.continues_before = continues_;
  block.byte_before = continues_ ? byte_before_ : '\n';
  block.continues_after = continues;
  if (size == buffer_.size()) {
    block.text = std::move(buffer_);
    buffer_.clear();
  } else {
    block.text.assign(buffer_, 0, size);
    buffer_.erase(0, size);
  }
  if (jsonl_) line_ += static_cast<std::uint64_t>(std::count(block.text.begin(), block.text.end(), '\n'));
  if (!block.text.empty()) byte_before_ = block.text.back();
  continues_ = continues;
}

bool BlockReader::next(TextBlock& block) {
  for (;;) {
    if (!file_) {
      if (next_file_ == files_.size()) return false;
      open_next_file();
    }
    fill();
    if (!at_end_) {
      bool continues = false;
      const std::size_t cut = find_cut(continues);
      if (cut == 0) {
        if (buffer_.size() >= longest_) refuse_long_piece();
        wanted_ = std::max(wanted_, buffer_.size()) * 2;
        continue;
      }
      take(cut, continues, block);
      wanted_ = block_bytes_;
      return true;
    }
    finished_bytes_ += file_->consumed();
    file_.reset();
    const bool stream = rule_ == DocumentRule::kStream && !jsonl_;
    if (buffer_.empty() && (!continues_ || stream)) continue;
    take(buffer_.size(), stream, block);
    return true;
  }
}

}  // namespace cosformer::data
