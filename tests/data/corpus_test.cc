#include "data/corpus/corpus.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/error.h"
#include "data/corpus/corpus_cache.h"
#include "data/corpus/corpus_reader.h"
#include "data/corpus/corpus_tokens.h"
#include "data/corpus_fixture.h"
#include "data/corpus_folder.h"
#include "data/file_mutation.h"
#include "data/tokenizers/tokenizer_words.h"

namespace cosformer::data {
namespace {

using cosformer::testing::all_starts;
using cosformer::testing::all_tokens;
using cosformer::testing::message_of;
using cosformer::testing::random_prose;
using cosformer::testing::read_bytes;
using cosformer::testing::trained_sentencepiece;

std::vector<std::string> naive_documents(const std::string& text) {
  std::vector<std::string> documents;
  std::istringstream lines(text);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    const bool blank = line.find_first_not_of(" \t\r\v\f") == std::string::npos;
    if (!blank && !inside) documents.emplace_back();
    if (!blank) documents.back() += (inside ? "\n" : "") + line;
    inside = !blank;
  }
  return documents;
}

TextCounts naive_counts(const std::vector<std::string>& documents, const Tokenizer& tokenizer) {
  TextCounts counts;
  for (const std::string& document : documents) {
    ++counts.documents;
    counts.tokens += tokenizer.encode(document).size() + 1;
    counts.bytes += document.size();
    counts.lines += static_cast<std::uint64_t>(std::count(document.begin(), document.end(), '\n'));
    std::istringstream words(document);
    for (std::string word; words >> word;) ++counts.words;
  }
  return counts;
}

TEST_F(CorpusTest, DocumentsByEachRule) {
  write("a.txt", "one\ntwo\n\n \n\nthree");
  write("b.txt", "\n\nfour\n");
  const TokenizerPointer bytes = byte_tokenizer();
  using Documents = std::vector<std::string>;
  const std::vector<std::pair<DocumentRule, Documents>> cases = {
      {DocumentRule::kFiles, {"one\ntwo\n\n \n\nthree", "\n\nfour\n"}},
      {DocumentRule::kBlankLines, {"one\ntwo", "three", "four"}},
      {DocumentRule::kLines, {"one", "two", "three", "four"}},
      {DocumentRule::kStream, {"one\ntwo\n\n \n\nthree\n\nfour\n"}},
  };
  for (const auto& [rule, expected] : cases) {
    const Corpus corpus = open_corpus(options({"a.txt", "b.txt"}, rule), bytes);
    EXPECT_EQ(documents_of(corpus, corpus.train), expected) << document_rule_name(rule);
    TextCounts counts = naive_counts(expected, *bytes);
    if (rule == DocumentRule::kStream) --counts.tokens;  // no <eod>
    EXPECT_EQ(corpus.train.counts(), counts) << document_rule_name(rule);
    EXPECT_EQ(document_rule(document_rule_name(rule)), rule);
  }
}

TEST_F(CorpusTest, BlocksOfAnySizeGiveTheSameTokens) {
  std::mt19937 random(7);
  std::vector<TokenizerPointer> tokenizers = {byte_tokenizer(), parse_word_vocabulary("the\nba\nor\n", "w")};
  if (sentencepiece_available()) tokenizers.push_back(trained_sentencepiece(random_prose(300, random), 300));
  for (int round = 0; round < 60; ++round) {
    std::string text = random_prose(random() % 12, random);
    if (round % 3 == 0) text += "no newline here";
    if (round % 5 == 0) text.insert(0, "\n \n");
    write("a.txt", text);
    write("b.txt", random_prose(3, random));
    for (const TokenizerPointer& tokenizer : tokenizers) {
      for (const DocumentRule rule :
           {DocumentRule::kFiles, DocumentRule::kBlankLines, DocumentRule::kLines, DocumentRule::kStream}) {
        const CorpusOptions corpus_options = options({"a.txt", "b.txt"}, rule);
        const auto read = [&](std::size_t block_bytes) {
          BlockReader reader(corpus_options.train, rule, tokenizer->cuts(), block_bytes);
          std::vector<std::int32_t> ids;
          std::vector<std::size_t> starts;
          TextCounts counts;
          for (TextBlock block; reader.next(block);) {
            const TokenBlock tokens = tokenize_block(block, "", corpus_options, *tokenizer);
            TextCounts before;
            for (const TextCounts& end : tokens.ends) {
              if (end.documents != before.documents) starts.push_back(ids.size() + before.tokens);
              before = end;
            }
            ids.insert(ids.end(), tokens.ids.begin(), tokens.ids.end());
            counts = {counts.documents + before.documents, counts.tokens + before.tokens, counts.bytes + before.bytes,
                      counts.words + before.words, counts.lines + before.lines};
          }
          EXPECT_EQ(counts.tokens, ids.size());
          return std::tuple(ids, starts, counts.documents, counts.bytes, counts.words, counts.lines);
        };
        const auto whole = read(std::size_t{1} << 20);
        for (const std::size_t block_bytes : {1U, 2U, 3U, 7U, 20U, 64U}) {
          ASSERT_EQ(read(block_bytes), whole) << document_rule_name(rule) << " " << tokenizer->kind_name() << " in "
                                              << block_bytes << ": " << ::testing::PrintToString(text);
        }
      }
    }
  }
}

TEST_F(CorpusTest, IsTheSameWithAnyNumberOfThreads) {
  std::mt19937 random(8);
  const std::string text = random_prose(110000, random);
  ASSERT_GT(text.size(), 3U << 20);
  write("a.txt", text);
  std::string rows;
  for (int i = 0; i < 3000; ++i) rows += "{\"text\": \"row " + std::to_string(i) + "\"}\n";
  write("b.jsonl", rows);
  WordCounter counter;
  counter.add(text);
  for (const TokenizerPointer& tokenizer : {byte_tokenizer(), counter.vocabulary(2000)}) {
    std::string first;
    for (const unsigned threads : {1U, 2U, 5U}) {
      CorpusOptions with = options({"a.txt", "b.jsonl"}, DocumentRule::kBlankLines);
      with.threads = threads;
      with.cache_folder = directory_.file("cache-" + std::to_string(threads));
      const Corpus corpus = open_corpus(with, tokenizer);
      const std::string cache = read_bytes(only_cache(corpus));
      if (first.empty()) first = cache;
      ASSERT_TRUE(cache == first) << threads;
      if (tokenizer->kind() != TokenizerKind::kBytes || threads != 1) continue;
      std::vector<std::string> expected = naive_documents(text);
      for (int i = 0; i < 3000; ++i) expected.push_back("row " + std::to_string(i));
      EXPECT_EQ(documents_of(corpus, corpus.train), expected);
      EXPECT_EQ(corpus.train.counts(), naive_counts(expected, *tokenizer));
    }
  }
}

TEST_F(CorpusTest, WordsOfAStreamAreThoseOfTheLiterature) {
  write("wiki.tokens", " \n = Title = \n the <unk> cat \n");
  const TokenizerPointer words = parse_word_vocabulary("the\ncat\n=\nTitle\n<unk>\n<eos>\n", "v");
  const Corpus corpus = open_corpus(options({"wiki.tokens"}, DocumentRule::kStream), words);
  EXPECT_EQ(corpus.train.tokens(), 9U);
  EXPECT_EQ(corpus.train.counts().words_and_lines(), 9U);
  // As a document of its own it ends with the <eos> that it has.
  const Corpus file = open_corpus(options({"wiki.tokens"}), words);
  EXPECT_EQ(all_tokens(file.train), all_tokens(corpus.train));
}

TEST_F(CorpusTest, FoldersAreReadSortedAndPackedFilesToo) {
  std::filesystem::create_directories(directory_.file("texts/inner"));
  write("texts/10.txt", "ten");
  write("texts/9.txt", "nine");
  write("texts/inner/1.txt", "one");
  write("texts/.hidden", "hidden");
  gzFile packed = ::gzopen(directory_.file("texts/inner/2.jsonl.gz").c_str(), "wb");
  ::gzputs(packed, "\xef\xbb\xbf{\"text\": \"two \\u00e9\", \"other\": 3}\n");
  ::gzclose(packed);
  const Corpus corpus = open_corpus(options({"texts"}), byte_tokenizer());
  EXPECT_EQ(documents_of(corpus, corpus.train), (std::vector<std::string>{"nine", "ten", "one", "two \u00e9"}));
  EXPECT_EQ(corpus.report.rows_used, 1U);
}

TEST_F(CorpusTest, BadRowsSayWhereAndWhyOrAreCounted) {
  write("a.jsonl",
        "{\"text\": \"one\"}\n\n{\"text\": 3}\nnonsense\n[1]\n{\"other\": \"x\"}\n{\"text\": \"\"}\n"
        "{\"text\": \"two\"}\n");
  CorpusOptions with = options({"a.jsonl"});
  const std::string message = message_of<UserError>([&] { open_corpus(with, byte_tokenizer()); });
  EXPECT_NE(message.find("a.jsonl' line 3: the value of 'text' is of type number"), std::string::npos) << message;
  EXPECT_NE(message.find("--skip-bad-rows"), std::string::npos) << message;
  with.rows.skip_bad_rows = true;
  for (int round = 0; round < 2; ++round) {  // the second time from the cache
    const Corpus corpus = open_corpus(with, byte_tokenizer());
    EXPECT_EQ(documents_of(corpus, corpus.train), (std::vector<std::string>{"one", "two"}));
    EXPECT_EQ(corpus.report.rows_skipped, 5U);
    EXPECT_EQ(corpus.report.rows_used, 2U);
    ASSERT_EQ(corpus.report.first_reasons.size(), 5U);
    EXPECT_NE(corpus.report.first_reasons[1].find("line 4: it is not valid JSON"), std::string::npos);
  }
  with.text_field = "other";
  const Corpus other = open_corpus(with, byte_tokenizer());
  EXPECT_EQ(documents_of(other, other.train), std::vector<std::string>{"x"});
}

TEST_F(CorpusTest, RefusesWhatIsNoCorpus) {
  const auto reason = [&](const CorpusOptions& with) {
    return message_of<UserError>([&] { open_corpus(with, byte_tokenizer()); });
  };
  EXPECT_NE(reason(options({})).find("no text was given"), std::string::npos);
  EXPECT_NE(reason(options({"missing.txt"})).find("there is no such file"), std::string::npos);
  write("empty.txt", "");
  EXPECT_NE(reason(options({"empty.txt"})).find("there is no text"), std::string::npos);
  write("packed.txt.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) + "garbage");
  EXPECT_NE(reason(options({"packed.txt.gz"})).find("damaged"), std::string::npos);
  std::filesystem::create_directories(directory_.file("nothing"));
  EXPECT_NE(reason(options({"nothing"})).find("holds no files"), std::string::npos);
  write("a.txt", "short");
  CorpusOptions split = options({"a.txt"});
  split.valid_fraction = 0.1;
  EXPECT_NE(reason(split).find("too short to hold a part of it out"), std::string::npos);
  split.valid_fraction = 1.5;
  EXPECT_NE(reason(split).find("must be from 0 to below 1"), std::string::npos);
  EXPECT_THROW(document_rule("pages"), UserError);
}

TEST_F(CorpusTest, HoldsOutDocumentsOrTheEnd) {
  std::mt19937 random(13);
  const std::string text = random_prose(3000, random);
  write("a.txt", text);
  CorpusOptions with = options({"a.txt"}, DocumentRule::kBlankLines);
  with.valid_fraction = 0.1;
  with.test_fraction = 0.05;
  const Corpus corpus = open_corpus(with, byte_tokenizer());
  std::multiset<std::string> seen;
  for (const CorpusPart* part : {&corpus.train, &corpus.valid, &corpus.test}) {
    const std::vector<std::string> documents = documents_of(corpus, *part);
    EXPECT_EQ(part->counts(), naive_counts(documents, *byte_tokenizer()));
    seen.insert(documents.begin(), documents.end());
  }
  const std::vector<std::string> all = naive_documents(text);
  ASSERT_GT(all.size(), 200U);
  EXPECT_EQ(seen, std::multiset<std::string>(all.begin(), all.end()));
  const auto total = static_cast<double>(corpus.train.tokens() + corpus.valid.tokens() + corpus.test.tokens());
  EXPECT_NEAR(static_cast<double>(corpus.valid.tokens()) / total, 0.1, 0.02);
  EXPECT_NEAR(static_cast<double>(corpus.test.tokens()) / total, 0.05, 0.02);
  EXPECT_EQ(all_tokens(corpus.valid), all_tokens(open_corpus(with, byte_tokenizer()).valid));
  with.split_seed = 1;
  EXPECT_NE(all_tokens(corpus.valid), all_tokens(open_corpus(with, byte_tokenizer()).valid));
  EXPECT_NE(corpus.split.find("documents drawn"), std::string::npos);

  with.documents = DocumentRule::kStream;
  const Corpus stream = open_corpus(with, byte_tokenizer());
  std::string joined;
  for (const CorpusPart* part : {&stream.train, &stream.valid, &stream.test}) {
    const std::string piece = byte_tokenizer()->decode(all_tokens(*part));
    EXPECT_EQ(part->counts().bytes, piece.size());
    EXPECT_EQ(part->counts().documents, 1U);
    EXPECT_EQ(all_starts(*part), std::vector<std::uint64_t>{0});
    joined += piece;
  }
  EXPECT_EQ(joined, text);
  EXPECT_NEAR(static_cast<double>(stream.valid.tokens()) / static_cast<double>(text.size()), 0.1, 0.03);

  write("valid.txt", "given");
  with.valid = {directory_.file("valid.txt")};
  const Corpus given = open_corpus(with, byte_tokenizer());
  EXPECT_EQ(byte_tokenizer()->decode(all_tokens(given.valid)), "given");
  EXPECT_EQ(given.train.tokens(), stream.train.tokens() + stream.valid.tokens());
}

TEST_F(CorpusTest, TokensPastSixteenBitsAreKept) {
  std::string list, text;
  for (int i = 0; i < 70000; ++i) list += "w" + std::to_string(i) + "\n";
  for (int i = 69000; i < 69100; ++i) text += "w" + std::to_string(i) + " ";
  write("a.txt", text);
  const Corpus corpus = open_corpus(options({"a.txt"}), parse_word_vocabulary(list, "w"));
  std::vector<std::int32_t> expected;
  for (int i = 69000; i < 69100; ++i) expected.push_back(i);
  expected.push_back(corpus.tokenizer->end_of_document());
  EXPECT_EQ(all_tokens(corpus.train), expected);
}

}  // namespace
}  // namespace cosformer::data
