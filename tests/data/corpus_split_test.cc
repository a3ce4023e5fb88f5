// Parts that are held out of a text are as large as was asked for, however short the text and whatever its lines.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/corpus_fixture.h"
#include "data/tokenizers/tokenizer_words.h"

namespace cosformer::data {
namespace {

using cosformer::testing::all_starts;
using cosformer::testing::all_tokens;
using cosformer::testing::message_of;
using cosformer::testing::random_prose;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::trained_sentencepiece;
using cosformer::testing::write_bytes;

std::uint64_t words_in(const std::string& text) {
  std::istringstream words(text);
  std::uint64_t count = 0;
  for (std::string word; words >> word;) ++count;
  return count;
}

class CorpusSplit : public ::testing::Test {
 protected:
  Corpus open(const std::string& text, double valid, double test, TokenizerPointer tokenizer = byte_tokenizer(),
              DocumentRule rule = DocumentRule::kFiles) const {
    write_bytes(directory_.file("a.txt"), text);
    CorpusOptions options;
    options.train = {directory_.file("a.txt")};
    options.documents = rule;
    options.valid_fraction = valid;
    options.test_fraction = test;
    options.cache_folder = directory_.file("cache");
    options.threads = 2;
    return open_corpus(options, std::move(tokenizer));
  }

  // The parts are the text, their counts those of their texts, and their sizes within a tenth of what was asked for.
  static void expect_parts(const Corpus& corpus, const std::string& text, double valid, double test) {
    std::string joined;
    std::uint64_t tokens = 0;
    for (const CorpusPart* part : {&corpus.train, &corpus.valid, &corpus.test}) {
      const std::string piece = corpus.tokenizer->decode(all_tokens(*part));
      EXPECT_EQ(part->counts().bytes, piece.size());
      if (text.find(' ') != std::string::npos) EXPECT_EQ(part->counts().words, words_in(piece));
      EXPECT_EQ(part->counts().lines, static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n')));
      EXPECT_EQ(part->counts().documents, 1U);
      EXPECT_EQ(all_starts(*part), std::vector<std::uint64_t>{0});
      joined += piece;
      tokens += part->tokens();
    }
    EXPECT_EQ(joined, text);
    const auto total = static_cast<double>(tokens);
    EXPECT_NEAR(static_cast<double>(corpus.valid.tokens()), valid * total, 0.2 * valid * total + 1);
    EXPECT_NEAR(static_cast<double>(corpus.test.tokens()), test * total, 0.1 * test * total + 1);
  }

  const TemporaryDirectory directory_;
};

TEST_F(CorpusSplit, OfAShortTextIsAsAskedForAndBeginsWithALine) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::string text = random_prose(2000, random).substr(0, 40000);
    const Corpus corpus = open(text, 0.02, 0.02);
    expect_parts(corpus, text, 0.02, 0.02);
    const std::string train = corpus.tokenizer->decode(all_tokens(corpus.train));
    EXPECT_EQ(train.back(), '\n');
  }
}

TEST_F(CorpusSplit, OfOneLineIsCutBetweenWords) {
  std::mt19937 random(3);
  std::string text = random_prose(1200, random);
  std::replace(text.begin(), text.end(), '\n', ' ');
  const Corpus corpus = open(text, 0.05, 0.05);
  expect_parts(corpus, text, 0.05, 0.05);
  EXPECT_EQ(corpus.tokenizer->decode(all_tokens(corpus.train)).back(), ' ');
}

TEST_F(CorpusSplit, OfOneLineWithoutBlanksIsCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 9000; ++i) text += "é€";
  const Corpus corpus = open(text, 0.03, 0.01);
  expect_parts(corpus, text, 0.03, 0.01);
  const std::string valid = corpus.tokenizer->decode(all_tokens(corpus.valid));
  EXPECT_TRUE(valid.starts_with("é") || valid.starts_with("€"));
}

// Tokenizers that may not be cut inside of a line.
TEST_F(CorpusSplit, OfOneLineInOtherTokens) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += (i > 0 ? " w" : "w") + std::to_string(i % 50);
  std::string list;
  for (int i = 0; i < 50; ++i) list += "w" + std::to_string(i) + "\n";
  const Corpus words = open(text, 0.05, 0.05, parse_word_vocabulary(list, "w"));
  EXPECT_EQ(words.train.tokens() + words.valid.tokens() + words.test.tokens(), 4001U);
  EXPECT_NEAR(static_cast<double>(words.valid.tokens()), 200, 2);
  EXPECT_EQ(words.valid.counts().words, words.valid.tokens());
  EXPECT_NEAR(static_cast<double>(words.valid.counts().bytes), 200 * 3.8, 20);
  EXPECT_EQ(words.train.counts().bytes + words.valid.counts().bytes + words.test.counts().bytes, text.size());
#ifdef COSFORMER_SENTENCEPIECE_MODULE
  const Corpus pieces = open(text, 0.05, 0.05, trained_sentencepiece("w1 w2 w3 w45\n" + text, 272));
  expect_parts(pieces, text, 0.05, 0.05);
#endif
}

// Runs of before name what they were trained on: a text that is long enough is divided as it was, between segments of a
// kilobyte and the rest of a line.
TEST_F(CorpusSplit, OfLongerTextsIsBetweenSegments) {
  std::mt19937 random(5);
  const std::string text = random_prose(20000, random);
  const Corpus corpus = open(text, 0.05, 0.05);
  expect_parts(corpus, text, 0.05, 0.05);
  const double total = static_cast<double>(text.size() + 1);
  std::size_t valid_begin = 0, test_begin = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    if (valid_begin == 0 && static_cast<double>(begin) >= total * 0.9) valid_begin = begin;
    if (test_begin == 0 && static_cast<double>(begin) >= total * 0.95) test_begin = begin;
    begin = text.size() - begin <= 1024 ? text.size() : std::min(text.find('\n', begin + 1024), text.size());
  }
  EXPECT_EQ(corpus.train.tokens(), valid_begin);
  EXPECT_EQ(corpus.valid.tokens(), test_begin - valid_begin);
}

TEST_F(CorpusSplit, OfManyDocumentsOfWhichOneIsNearlyAllIsNotDrawn) {
  std::string text = std::string(300000, 'x') + "\n";
  for (int i = 0; i < 150; ++i) text += "line " + std::to_string(i) + "\n";
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Corpus corpus = open(text, 0.1, 0.1, byte_tokenizer(), DocumentRule::kLines);
    const auto total = static_cast<double>(corpus.train.tokens() + corpus.valid.tokens() + corpus.test.tokens());
    EXPECT_NEAR(static_cast<double>(corpus.valid.tokens()) / total, 0.1, 0.05);
    EXPECT_NEAR(static_cast<double>(corpus.test.tokens()) / total, 0.1, 0.05);
  }
}

TEST_F(CorpusSplit, OfAFewWordsIsRefused) {
  const std::string reason = message_of<UserError>([&] { open("a few words, no more", 0.05, 0.05); });
  EXPECT_NE(reason.find("21 tokens is too short to hold a part of it out (validation: 5"), std::string::npos) << reason;
  EXPECT_NE(reason.find("data.valid_fraction"), std::string::npos) << reason;
}

}  // namespace
}  // namespace cosformer::data
