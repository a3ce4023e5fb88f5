// Tokenizer files, SentencePiece models and JSONL damaged thousands of times: they are read or refused with a
// UserError, and nothing crashes or hangs. COSFORMER_FUZZ_SEED repeats a run, COSFORMER_FUZZ_ROUNDS lengthens it.
#include <functional>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/corpus/corpus_reader.h"
#include "data/corpus/corpus_tokens.h"
#include "data/corpus_fixture.h"
#include "data/file_mutation.h"
#include "data/foreign_sentencepiece.h"
#include "data/tokenizers/tokenizer_file.h"
#include "data/tokenizers/tokenizer_words.h"

namespace cosformer::data {
namespace {

using cosformer::testing::foreign_sentencepiece;
using cosformer::testing::from_environment;
using cosformer::testing::mutated;
using cosformer::testing::random_bytes;
using cosformer::testing::random_prose;
using cosformer::testing::random_unicode;
using cosformer::testing::replace_bytes;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::trained_sentencepiece;

struct Outcome {
  unsigned long read = 0, refused = 0;
};

// Calls attempt(damaged, random) again and again.
Outcome fuzz(unsigned long usual_rounds, const std::string& good,
             const std::function<void(const std::string& bytes, std::mt19937& random)>& attempt) {
  const auto seed = static_cast<std::uint32_t>(from_environment("COSFORMER_FUZZ_SEED", std::random_device{}()));
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  Outcome outcome;
  for (unsigned long round = from_environment("COSFORMER_FUZZ_ROUNDS", usual_rounds); round > 0; --round) {
    try {
      attempt(mutated(good, random), random);
      ++outcome.read;
    } catch (const UserError& error) {
      EXPECT_LT(std::string(error.what()).size(), 1500U);
      ++outcome.refused;
    }
  }
  return outcome;
}

// Whatever was read must be of use.
void exercise(const Tokenizer& tokenizer, std::mt19937& random) {
  const std::vector<std::string> texts = {random_unicode(20, random), random_bytes(20, random),
                                          random_prose(2, random)};
  for (const std::string& text : texts) {
    const std::vector<std::int32_t> ids = tokenizer.encode(text);
    for (const std::int32_t id : ids) {
      ASSERT_GE(id, 0);
      ASSERT_LT(id, tokenizer.vocabulary());
    }
    tokenizer.decode(ids);
  }
  for (const SpecialToken& special : tokenizer.specials()) ASSERT_EQ(tokenizer.token_name(special.id), special.name);
  ASSERT_EQ(parse_tokenizer(tokenizer.serialized(), "again")->hash(), tokenizer.hash());
}

TEST(LanguageFuzz, SavedTokenizers) {
  std::vector<std::string> files = {byte_tokenizer()->serialized(),
                                    parse_word_vocabulary("a\nb 3\n", "w")->serialized()};
  if (sentencepiece_available()) {
    std::mt19937 random(1);
    files.push_back(trained_sentencepiece(random_prose(200, random), 300)->serialized());
  }
  for (const std::string& good : files) {
    const Outcome outcome = fuzz(3000, good, [&](const std::string& bytes, std::mt19937& random) {
      const TokenizerPointer tokenizer = parse_tokenizer(bytes, "t");
      ASSERT_EQ(bytes, good);  // the hash tells every change
      exercise(*tokenizer, random);
    });
    EXPECT_GT(outcome.refused, 0U);
  }
}

TEST(LanguageFuzz, WordLists) {
  const Outcome outcome =
      fuzz(3000, "the 12\nof 3\n<unk>\n<eos> 7\ncaf\u00e9\n",
           [](const std::string& bytes, auto& random) { exercise(*parse_word_vocabulary(bytes, "w"), random); });
  EXPECT_GT(outcome.read, 0U);
  EXPECT_GT(outcome.refused, 0U);
}

TEST(LanguageFuzz, SentencePieceModels) {
  if (!sentencepiece_available()) GTEST_SKIP() << "built without SentencePiece";
  std::mt19937 prose(2);
  const std::string text = random_prose(200, prose);
  const std::vector<std::string> models = {
      trained_sentencepiece(text, 290)->serialized().substr(64),
      trained_sentencepiece(text, 290, "bpe")->serialized().substr(64),
      foreign_sentencepiece(text, {{"vocab_size", "40"}, {"model_type", "unigram"}}),
      foreign_sentencepiece(text, {{"vocab_size", "40"},
                                   {"model_type", "bpe"},
                                   {"normalization_rule_name", "identity"},
                                   {"user_defined_symbols", "<sep>,ba ba"}}),
      foreign_sentencepiece("a b\nb c\n",
                            {{"vocab_size", "6"}, {"model_type", "word"}, {"normalization_rule_name", "identity"}}),
  };
  for (const std::string& good : models) {
    std::mt19937 random(3);
    exercise(*parse_sentencepiece(good, "good"), random);
    const Outcome outcome = fuzz(300, good, [](const std::string& bytes, std::mt19937& random) {
      exercise(*parse_sentencepiece(bytes, "m"), random);
    });
    EXPECT_GT(outcome.read, 0U);
    EXPECT_GT(outcome.refused, 0U);
  }
}

// The table of characters is most of a model with normalisation, and what the library trusts most: damaged by itself.
TEST(LanguageFuzz, SentencePieceCharacterTables) {
  if (!sentencepiece_available()) GTEST_SKIP() << "built without SentencePiece";
  const std::string model = foreign_sentencepiece("a b\nb c\n", {{"vocab_size", "7"}, {"model_type", "unigram"}});
  const std::size_t table = model.find("nmt_nfkc");
  ASSERT_NE(table, std::string::npos);
  const Outcome outcome = fuzz(300, "", [&](const std::string&, std::mt19937& random) {
    std::string bytes = model;
    for (unsigned edits = 1 + random() % 40; edits > 0; --edits) {
      const std::size_t at = table + random() % (bytes.size() - table);
      bytes[at] = static_cast<char>(random() % 2 == 0 ? bytes[at] ^ (1 << random() % 8) : random());
    }
    exercise(*parse_sentencepiece(bytes, "m"), random);
  });
  EXPECT_GT(outcome.refused, 0U);
}

TEST(LanguageFuzz, JsonLinesAndTexts) {
  const TemporaryDirectory directory;
  const TokenizerPointer bytes = byte_tokenizer();
  for (const std::string name : {"a.jsonl", "a.txt", "a.txt.gz"}) {
    const Outcome outcome =
        fuzz(2000, "{\"text\": \"a\\u00e9\\ud83d\\ude00\", \"n\": [1, {\"x\": 2e3}]}\n\n{\"text\": \"b\\n\\nc\"}\n",
             [&](const std::string& content, std::mt19937& random) {
               replace_bytes(directory.file(name), content);
               CorpusOptions options;
               options.documents = static_cast<DocumentRule>(random() % 4);
               options.rows.skip_bad_rows = random() % 2 == 0;
               BlockReader reader({directory.file(name)}, options.documents, bytes->cuts(), 1 + random() % 50);
               for (TextBlock block; reader.next(block);) {
                 const TokenBlock tokens = tokenize_block(block, name, options, *bytes);
                 if (!tokens.problem.empty()) throw UserError(tokens.problem);
                 ASSERT_EQ(tokens.ids.size(), tokens.ends.empty() ? 0 : tokens.ends.back().tokens);
               }
             });
    EXPECT_GT(outcome.read, 0U);
    EXPECT_TRUE(outcome.refused > 0 || name != "a.jsonl");
  }
}

}  // namespace
}  // namespace cosformer::data
