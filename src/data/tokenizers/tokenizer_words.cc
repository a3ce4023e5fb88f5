#include "data/tokenizers/tokenizer_words.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/white_space.h"
#include "data/readers/file_content.h"

namespace cosformer::data {
namespace {

constexpr std::string_view kMaskName = "<mask>";
// Ids are 32-bit numbers, and tables of logits have to be made.
constexpr std::size_t kMostWords = 100'000'000;
constexpr std::size_t kLongestWord = 1 << 20;

// Calls use(word) for each word and newline() for each newline.
template <typename Use, typename Newline>
void split_words(std::string_view text, Use&& use, Newline&& newline) {
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      if (text[at++] == '\n') newline();
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && !is_space(text[at])) ++at;
    use(text.substr(begin, at - begin));
  }
}

// Looking up by views without making strings.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

class WordTokenizer final : public Tokenizer {
 public:
  // All different, <unk> and <eos> among them.
  explicit WordTokenizer(std::vector<std::string> words) : words_(std::move(words)) {
    std::string content;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      content += words_[i];
      content += '\n';
      ids_.emplace(words_[i], static_cast<std::int32_t>(i));
    }
    unknown_ = ids_.find(kUnknownWord)->second;
    end_ = ids_.find(kEndOfLineWord)->second;
    specials_ = {{std::string(kUnknownWord), unknown_}, {std::string(kEndOfLineWord), end_}};
    if (end_ < unknown_) std::swap(specials_[0], specials_[1]);
    specials_.push_back({std::string(kMaskName), mask()});
    set_content(std::move(content));
  }

  TokenizerKind kind() const override { return TokenizerKind::kWords; }
  std::int32_t vocabulary() const override { return static_cast<std::int32_t>(words_.size()) + 1; }
  std::int32_t end_of_document() const override { return end_; }
  std::int32_t mask() const override { return static_cast<std::int32_t>(words_.size()); }
  const std::vector<SpecialToken>& specials() const override { return specials_; }
  TextCuts cuts() const override { return TextCuts::kAtNewlines; }

  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override {
    split_words(
        text,
        [&](std::string_view word) {
          const auto found = ids_.find(word);
          ids.push_back(found == ids_.end() ? unknown_ : found->second);
        },
        [&] { ids.push_back(end_); });
  }

  void append_text(std::int32_t id, std::int32_t previous, std::string& text) const override {
    require_id(id);
    if (id == end_) {
      text += '\n';
      return;
    }
    if (previous != kNothing && previous != end_) text += ' ';
    text += id == mask() ? kMaskName : std::string_view(words_[static_cast<std::size_t>(id)]);
  }

  std::string token_name(std::int32_t id) const override {
    require_id(id);
    return id == mask() ? std::string(kMaskName) : words_[static_cast<std::size_t>(id)];
  }

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> ids_;
  std::vector<SpecialToken> specials_;
  std::int32_t unknown_ = 0, end_ = 0;
};

TokenizerPointer with_specials(std::vector<std::string> words) {
  for (const std::string_view special : {kUnknownWord, kEndOfLineWord}) {
    if (std::find(words.begin(), words.end(), special) == words.end()) words.emplace_back(special);
  }
  return std::make_shared<WordTokenizer>(std::move(words));
}

// A line is a word, or a word and its count.
std::string_view word_of_line(std::string_view line) {
  while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  const std::size_t gap = static_cast<std::size_t>(std::find_if(line.begin(), line.end(), is_space) - line.begin());
  const std::string_view rest = line.substr(gap);
  const bool count =
      std::all_of(rest.begin(), rest.end(), [](char c) { return is_space(c) || (c >= '0' && c <= '9'); });
  return count ? line.substr(0, gap) : std::string_view();
}

}  // namespace

TokenizerPointer parse_word_vocabulary(std::string_view text, const std::string& name) {
  std::vector<std::string> words;
  std::unordered_map<std::string_view, std::size_t> lines;
  const auto refuse = [&](std::size_t line, const std::string& reason) {
    throw UserError(fmt::format("cannot read '{}' as a vocabulary: line {}: {}", name, line, reason));
  };
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_blank(line)) continue;
    const std::string_view word = word_of_line(line);
    if (word.empty()) refuse(number, "expected a word, or a word and its count; found several");
    if (word.size() > kLongestWord) refuse(number, "the word has more than a million bytes; is this a word list?");
    if (word == kMaskName) refuse(number, "<mask> is added by itself; remove the line");
    const auto [before, is_new] = lines.emplace(word, number);
    if (!is_new) refuse(number, fmt::format("the word is there already, on line {}", before->second));
    words.emplace_back(word);
    if (words.size() > kMostWords) refuse(number, fmt::format("more than {} words", kMostWords));
  }
  if (words.empty())
    throw UserError(fmt::format("cannot read '{}' as a vocabulary: it has no word; expected one a line", name));
  return with_specials(std::move(words));
}

TokenizerPointer load_word_vocabulary(const std::string& path) {
  return parse_word_vocabulary(read_content(path), path);
}

void WordCounter::add(std::string_view text) {
  split_words(
      text,
      [&](std::string_view word) {
        const auto found = counts_.find(word);
        ++(found == counts_.end() ? counts_.emplace(word, 0).first : found)->second;
        ++words_;
      },
      [&] { ++lines_; });
}

void WordCounter::add(const WordCounter& other) {
  for (const auto& [word, count] : other.counts_) counts_[word] += count;
  words_ += other.words_;
  lines_ += other.lines_;
}

TokenizerPointer WordCounter::vocabulary(std::size_t most_words, std::uint64_t least_count) const {
  using Counted = std::pair<std::uint64_t, std::string_view>;
  std::vector<Counted> counted;
  std::uint64_t ends = lines_;
  for (const auto& [word, count] : counts_) {
    if (word == kMaskName) continue;  // in a text it is no mask: <unk>
    if (word == kEndOfLineWord) {
      ends += count;
    } else if (count >= least_count || word == kUnknownWord) {
      counted.emplace_back(count, word);
    }
  }
  if (counted.empty()) throw UserError("the text has no word that is frequent enough for a vocabulary; give more text");
  counted.emplace_back(ends, kEndOfLineWord);
  std::sort(counted.begin(), counted.end(), [](const Counted& a, const Counted& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<std::string> words;
  std::size_t ordinary = 0;
  for (const auto& [count, word] : counted) {
    const bool special = word == kUnknownWord || word == kEndOfLineWord;
    if (!special && most_words != 0 && ++ordinary > most_words) continue;
    words.emplace_back(word);
  }
  return with_specials(std::move(words));
}

}  // namespace cosformer::data
