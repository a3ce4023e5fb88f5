#include "data/tasks/same_article.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "base/random.h"
#include "data/dataset/row_report.h"
#include "data/readers/file_content.h"

namespace cosformer::data {
namespace {

struct Passage {
  const char* begin = nullptr;
  std::size_t size = 0;
};

struct Pair {
  Passage first, second;
  std::int32_t label = 0;
};

// Passages are views of the one text that all parts share.
class PassagePairs : public Dataset {
 public:
  PassagePairs(std::shared_ptr<const std::string> text, std::vector<Pair> pairs, std::size_t most_length)
      : text_(std::move(text)), pairs_(std::move(pairs)) {
    info_.name = "same_article";
    info_.vocabulary = kByteVocabulary;
    info_.pairs = true;
    info_.classes = {"two articles", "one article"};
    info_.max_length = static_cast<std::int64_t>(most_length);
  }

  const DatasetInfo& info() const override { return info_; }
  std::size_t size() const override { return pairs_.size(); }
  Lengths lengths(std::size_t index) const override {
    const Pair& pair = pairs_[index];
    return {static_cast<std::int64_t>(pair.first.size), static_cast<std::int64_t>(pair.second.size)};
  }
  std::int32_t label(std::size_t index) const override { return pairs_[index].label; }
  Example get(std::size_t index) const override {
    const Pair& pair = pairs_.at(index);
    return {{ElementType::kU8, pair.first.begin, pair.first.size},
            {ElementType::kU8, pair.second.begin, pair.second.size},
            pair.label};
  }

 private:
  std::shared_ptr<const std::string> text_;
  std::vector<Pair> pairs_;
  DatasetInfo info_;
};

// The text between blank lines; line ends may be LF or CRLF.
std::vector<std::string_view> split_articles(std::string_view text) {
  std::vector<std::string_view> articles;
  std::size_t begin = 0, position = 0;
  const auto end_article = [&](std::size_t end) {
    while (end > begin && (text[end - 1] == '\n' || text[end - 1] == '\r')) --end;
    if (end > begin) articles.push_back(text.substr(begin, end - begin));
  };
  while (position < text.size()) {
    const std::size_t line_end = std::min(text.find('\n', position), text.size());
    const std::string_view line = text.substr(position, line_end - position);
    const std::size_t next = std::min(line_end + 1, text.size());
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      end_article(position);
      begin = next;
    }
    position = next;
  }
  end_article(text.size());
  return articles;
}

struct Passages {
  Passage first, second;
};

// Two passages of lengths that the article does not influence; what they leave of it is divided at random before,
// between and behind them.
Passages draw_passages(std::string_view article, const SameArticleOptions& options, Random& random) {
  const auto length = [&] {
    return options.least_length + random.below(options.most_length - options.least_length + 1);
  };
  const std::size_t first = length(), second = length();
  const std::size_t left_over = article.size() - first - second;
  std::size_t before = random.below(left_over + 1), behind = random.below(left_over + 1);
  if (before > behind) std::swap(before, behind);
  return {{article.data() + before, first}, {article.data() + behind + first, second}};
}

std::vector<Pair> draw_pairs(std::span<const std::string_view> articles, std::size_t count, std::uint64_t part,
                             const SameArticleOptions& options) {
  std::vector<Pair> pairs;
  pairs.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    Random random(options.seed, RandomStream::kPassages, i * 4 + part);
    const std::size_t here = i / 2 % articles.size();  // each article in turn, once for either class
    const Passages own = draw_passages(articles[here], options, random);
    const bool same = i % 2 == 1;
    const std::size_t there = (here + 1 + random.below(articles.size() - 1)) % articles.size();
    const Passages other = draw_passages(articles[there], options, random);
    pairs.push_back({own.first, same ? own.second : other.second, same ? 1 : 0});
  }
  return pairs;
}

void require_possible(const SameArticleOptions& options) {
  if (options.least_length == 0 || options.least_length > options.most_length) {
    throw UserError(fmt::format("passages of {} to {} bytes are impossible; expected 1 <= least <= most",
                                options.least_length, options.most_length));
  }
  const double kept_out = options.valid_fraction + options.test_fraction;
  if (!(options.valid_fraction > 0 && options.test_fraction > 0 && kept_out < 1)) {
    throw UserError(
        fmt::format("the fractions of articles for validation and test are {} and {}; expected both above 0 and less "
                    "than 1 together",
                    options.valid_fraction, options.test_fraction));
  }
}

}  // namespace

SameArticleSplits load_same_article(const std::string& path, const SameArticleOptions& options) {
  require_possible(options);
  const auto text = std::make_shared<const std::string>(read_content(path));
  std::vector<std::string_view> articles = split_articles(*text);
  const std::size_t found = articles.size();
  std::erase_if(articles, [&](std::string_view article) { return article.size() / 2 < options.most_length; });
  SameArticleSplits splits;
  splits.articles = articles.size();
  splits.too_short = found - articles.size();

  Random random(options.seed, RandomStream::kArticles, 0);
  shuffle(articles, random);
  const auto share = [&](double fraction) {
    return static_cast<std::size_t>(std::llround(fraction * static_cast<double>(articles.size())));
  };
  const std::size_t valid = share(options.valid_fraction), test = share(options.test_fraction);
  if (valid < 2 || test < 2 || articles.size() < valid + test + 2) {
    refuse_file(path, fmt::format("it has {} articles of at least {} bytes (and {} shorter ones); expected enough for "
                                  "two in each part, separated by blank lines",
                                  articles.size(), 2 * options.most_length, splits.too_short));
  }
  const std::span<const std::string_view> all(articles);
  const auto part = [&](std::size_t begin, std::size_t size, std::size_t count, std::uint64_t number) {
    return std::make_shared<PassagePairs>(text, draw_pairs(all.subspan(begin, size), count, number, options),
                                          options.most_length);
  };
  splits.test = part(0, test, options.test, 2);
  splits.valid = part(test, valid, options.valid, 1);
  splits.train = part(test + valid, articles.size() - test - valid, options.train, 0);
  return splits;
}

}  // namespace cosformer::data
