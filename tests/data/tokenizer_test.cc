#include "data/tokenizers/tokenizer.h"

#include <algorithm>
#include <map>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "base/formats/utf8.h"
#include "data/corpus_fixture.h"
#include "data/tokenizers/sentencepiece_model.h"
#include "data/tokenizers/stream_decoder.h"
#include "data/tokenizers/tokenizer_file.h"
#include "data/tokenizers/tokenizer_sentencepiece.h"
#include "data/tokenizers/tokenizer_words.h"

namespace cosformer::data {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::random_bytes;
using cosformer::testing::random_prose;
using cosformer::testing::random_unicode;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::trained_sentencepiece;
using cosformer::testing::utf8_of;
using cosformer::testing::write_bytes;

// Learned once: it takes a part of a second.
const std::map<std::string, TokenizerPointer>& trained() {
  static const std::map<std::string, TokenizerPointer> tokenizers = [] {
    std::mt19937 random(5);
    const std::string text = random_prose(600, random);
    std::map<std::string, TokenizerPointer> made;
    for (const char* model : {"unigram", "bpe"}) made.emplace(model, trained_sentencepiece(text, 400, model));
    return made;
  }();
  return tokenizers;
}

std::vector<TokenizerPointer> lossless() {
  std::vector<TokenizerPointer> tokenizers = {byte_tokenizer()};
  if (sentencepiece_available()) {
    for (const auto& [name, tokenizer] : trained()) tokenizers.push_back(tokenizer);
  }
  return tokenizers;
}

TokenizerPointer some_words() {
  return parse_word_vocabulary("the 7\n<unk> 5\ncat\t3\n<eos>\n", "words.txt");
}

void check_round_trip(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  for (const std::int32_t id : ids) {
    ASSERT_GE(id, 0);
    ASSERT_LT(id, tokenizer.vocabulary());
    ASSERT_FALSE(tokenizer.is_special(id));
  }
  ASSERT_EQ(tokenizer.decode(ids), text);
}

TEST(Tokenizer, GivesBackRandomUnicodeAndRandomBytes) {
  std::mt19937 random(1);
  for (const TokenizerPointer& tokenizer : lossless()) {
    for (int round = 0; round < 300; ++round) {
      check_round_trip(*tokenizer, random_unicode(random() % 60, random));
      check_round_trip(*tokenizer, random_bytes(random() % 60, random));
      check_round_trip(*tokenizer, random_prose(random() % 4, random));
    }
  }
}

TEST(Tokenizer, TextsMayBeCutWhereItSays) {
  std::mt19937 random(2);
  std::vector<TokenizerPointer> tokenizers = lossless();
  tokenizers.push_back(some_words());
  for (const TokenizerPointer& tokenizer : tokenizers) {
    ASSERT_NE(tokenizer->cuts(), TextCuts::kAtDocuments);
    for (int round = 0; round < 100; ++round) {
      const std::string text = random_prose(5, random) + random_unicode(20, random);
      std::size_t cut = random() % text.size();
      if (tokenizer->cuts() == TextCuts::kAtNewlines) cut = text.find('\n', random() % 4) + random() % 2;
      std::vector<std::int32_t> pieces = tokenizer->encode(std::string_view(text).substr(0, cut));
      static_cast<const Tokenizer&>(*tokenizer).encode(std::string_view(text).substr(cut), pieces);
      ASSERT_EQ(pieces, tokenizer->encode(text));
    }
  }
}

TEST(Tokenizer, BytesAreTheirIds) {
  const TokenizerPointer bytes = byte_tokenizer();
  EXPECT_EQ(bytes->encode("A\xff"), (std::vector<std::int32_t>{65, 255}));
  EXPECT_EQ(bytes->vocabulary(), 258);
  EXPECT_EQ(bytes->end_of_document(), 256);
  EXPECT_EQ(bytes->decode(std::vector<std::int32_t>{65, 256, 257, 66}), "AB");
  EXPECT_THROW(bytes->decode(std::vector<std::int32_t>{258}), std::out_of_range);
  EXPECT_THROW(bytes->decode(std::vector<std::int32_t>{-1}), std::out_of_range);
  EXPECT_EQ(bytes->token_name(10), "<0x0a>");
  EXPECT_EQ(bytes->token_name(256), "<eod>");
}

TEST(Tokenizer, IsTheSameAfterSavingAndHasAHashOfItsOwn) {
  const TemporaryDirectory directory;
  std::vector<TokenizerPointer> tokenizers = lossless();
  tokenizers.push_back(some_words());
  tokenizers.push_back(parse_word_vocabulary("the\n<unk>\ncats\n<eos>\n", "other.txt"));
  std::map<std::string, int> hashes;
  for (const TokenizerPointer& tokenizer : tokenizers) {
    ++hashes[tokenizer->hash()];
    save_tokenizer(directory.file("tokenizer"), *tokenizer);
    const TokenizerPointer again = open_tokenizer(directory.file("tokenizer"));
    EXPECT_EQ(again->hash(), tokenizer->hash());
    EXPECT_EQ(again->kind(), tokenizer->kind());
    EXPECT_EQ(again->vocabulary(), tokenizer->vocabulary());
    EXPECT_EQ(again->encode("the cat sat\n"), tokenizer->encode("the cat sat\n"));
    require_tokenizer(*again, tokenizer->hash(), "the run 'x'");
  }
  EXPECT_EQ(hashes.size(), tokenizers.size());
  const std::string message =
      message_of<UserError>([&] { require_tokenizer(*byte_tokenizer(), some_words()->hash(), "the run 'x'"); });
  EXPECT_NE(message.find("the run 'x' was made with another tokenizer"), std::string::npos) << message;
}

TEST(Tokenizer, RefusesFilesThatAreNoTokenizers) {
  const std::string good = some_words()->serialized();
  const auto reason = [](const std::string& bytes) {
    return message_of<UserError>([&] { parse_tokenizer(bytes, "t"); });
  };
  EXPECT_NE(reason("").find("does not begin"), std::string::npos);
  EXPECT_NE(reason(good.substr(0, good.size() - 1)).find("bytes of content"), std::string::npos);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = good;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      ASSERT_NE(reason(flipped), reason(good)) << at;
    }
  }
  EXPECT_NE(message_of<UserError>([] { open_tokenizer("no such"); }).find("expected bytes, or the path"),
            std::string::npos);
}

TEST(WordTokenizer, CountsAndSplitsAsANaiveReaderDoes) {
  std::mt19937 random(3);
  const std::string text = random_prose(400, random);
  std::map<std::string, std::uint64_t> counts;
  std::istringstream lines(text);
  std::vector<std::string> expected;  // the words and line ends of the text
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      ++counts[word];
      expected.push_back(word);
    }
    expected.emplace_back("<eos>");
  }
  WordCounter counter;
  const std::size_t half = text.find('\n', text.size() / 2) + 1;
  counter.add(text.substr(0, half));
  WordCounter other;
  other.add(text.substr(half));
  counter.add(other);
  const TokenizerPointer words = counter.vocabulary();
  EXPECT_EQ(counter.different(), counts.size());
  EXPECT_EQ(words->vocabulary(), static_cast<std::int32_t>(counts.size() + 3));  // <unk>, <eos>, <mask>
  std::vector<std::string> names;
  for (const std::int32_t id : words->encode(text)) names.push_back(words->token_name(id));
  EXPECT_EQ(names, expected);
  std::uint64_t before = 400;  // lines
  for (std::int32_t id = 0; id < words->vocabulary() - 2; ++id) {
    const std::string name = words->token_name(id);
    const std::uint64_t count = name == "<eos>" ? 400 : counts.at(name);
    EXPECT_LE(count, before) << name;
    before = count;
  }
  // A small vocabulary keeps the most frequent words.
  const TokenizerPointer few = counter.vocabulary(10);
  EXPECT_EQ(few->vocabulary(), 13);
  std::uint64_t unknown = 0;
  for (const std::int32_t id : few->encode(text)) unknown += few->token_name(id) == "<unk>";
  std::vector<std::uint64_t> sorted;
  for (const auto& [word, count] : counts) sorted.push_back(count);
  std::sort(sorted.rbegin(), sorted.rend());
  std::uint64_t rare = 0;
  for (std::size_t i = 10; i < sorted.size(); ++i) rare += sorted[i];
  EXPECT_EQ(unknown, rare);
}

TEST(WordTokenizer, ReadsVocabulariesAndPublishedUnknownWords) {
  const TokenizerPointer words = some_words();
  EXPECT_EQ(words->encode(" the <unk> cat dog \n\n"), (std::vector<std::int32_t>{0, 1, 2, 1, 3, 3}));
  EXPECT_EQ(words->decode(words->encode(" the   <unk>\n cat\n")), "the <unk>\ncat\n");
  EXPECT_EQ(words->vocabulary(), 5);
  EXPECT_EQ(words->end_of_document(), 3);
  EXPECT_EQ(parse_word_vocabulary("a\nb\n", "w")->vocabulary(), 5);
  const auto reason = [](const std::string& text) {
    return message_of<UserError>([&] { parse_word_vocabulary(text, "w.txt"); });
  };
  EXPECT_NE(reason("a\nb\na 3\n").find("line 3: the word is there already, on line 1"), std::string::npos);
  EXPECT_NE(reason("a b c\n").find("line 1: expected a word"), std::string::npos);
  EXPECT_NE(reason(" \n").find("no word"), std::string::npos);
  EXPECT_NE(reason("<mask>\n").find("<mask> is added"), std::string::npos);
}

class SentencePiece : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!sentencepiece_available()) GTEST_SKIP() << "built without SentencePiece";
  }
};

TEST_F(SentencePiece, LearnsPiecesThatAreShorterThanBytes) {
  std::mt19937 random(9);
  const std::string text = random_prose(50, random);
  for (const auto& [name, tokenizer] : trained()) {
    EXPECT_EQ(tokenizer->vocabulary(), 400) << name;
    EXPECT_EQ(tokenizer->token_name(tokenizer->end_of_document()), "<eod>");
    EXPECT_EQ(tokenizer->token_name(tokenizer->mask()), "<mask>");
    EXPECT_LT(tokenizer->encode(text).size(), text.size() / 2) << name;
    EXPECT_EQ(tokenizer->specials().size(), 3U);  // and <unk>
  }
}

TEST_F(SentencePiece, IsTheSameWhenLearnedAgain) {
  std::mt19937 random(5);
  EXPECT_EQ(trained_sentencepiece(random_prose(600, random), 400)->hash(), trained().at("unigram")->hash());
}

TEST_F(SentencePiece, RefusesImpossibleVocabularies) {
  const auto reason = [](const std::string& text, std::int32_t size) {
    return message_of<UserError>([&] { trained_sentencepiece(text, size); });
  };
  EXPECT_NE(reason("some text", 100).find("expected 264"), std::string::npos);
  EXPECT_NE(reason("some text", 50000).find("could not learn a vocabulary of 50000"), std::string::npos);
  EXPECT_NE(reason("", 300).find("no text"), std::string::npos);
  EXPECT_NE(reason("\xff\xfe\n", 300).find("no text"), std::string::npos);
}

TEST_F(SentencePiece, ReadsModelFiles) {
  const TemporaryDirectory directory;
  const TokenizerPointer tokenizer = trained().at("bpe");
  write_bytes(directory.file("a.model"), tokenizer->serialized().substr(64));
  EXPECT_EQ(open_tokenizer(directory.file("a.model"))->hash(), tokenizer->hash());
  write_bytes(directory.file("b.model"), "not a model");
  EXPECT_NE(message_of<UserError>([&] { open_tokenizer(directory.file("b.model")); }).find("as a SentencePiece model"),
            std::string::npos);
}

TEST(StreamDecoder, NeverSplitsACharacter) {
  std::mt19937 random(4);
  for (const TokenizerPointer& tokenizer : lossless()) {
    for (int round = 0; round < 200; ++round) {
      const std::string text = random_unicode(30, random);
      StreamDecoder decoder(tokenizer);
      std::string shown;
      for (const std::int32_t id : tokenizer->encode(text)) {
        const std::string piece = decoder.push(id);
        ASSERT_TRUE(is_utf8(piece));
        shown += piece;
      }
      shown += decoder.finish();
      ASSERT_EQ(shown, text);
    }
  }
}

TEST(StreamDecoder, ReplacesOnlyWhatIsInvalid) {
  std::mt19937 random(6);
  const TokenizerPointer bytes = byte_tokenizer();
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_unicode(3, random) + random_bytes(random() % 8, random) + random_unicode(3, random);
    StreamDecoder decoder(bytes);
    std::string one_by_one;
    for (const std::int32_t id : bytes->encode(text)) one_by_one += decoder.push(id);
    one_by_one += decoder.finish();
    Utf8Filter filter;
    ASSERT_EQ(one_by_one, filter.push(text) + filter.finish());
    ASSERT_TRUE(is_utf8(one_by_one));
    ASSERT_EQ(one_by_one == text, is_utf8(text));
  }
  Utf8Filter filter;
  EXPECT_EQ(filter.push("a\xe2\x82"), "a");
  EXPECT_EQ(filter.push("\xac"), "\xe2\x82\xac");
  EXPECT_EQ(filter.push("\xf0\x9f\x98"
                        "b"),
            "\xef\xbf\xbd"
            "b");                                                                  // one for a cut character
  EXPECT_EQ(filter.push("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");                  // overlong
  EXPECT_EQ(filter.push("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // a surrogate
  EXPECT_EQ(filter.push("\xf0\x9f"), "");
  EXPECT_EQ(filter.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(filter.finish(), "");
}

TEST(Utf8, AcceptsEveryCharacterAndNothingElse) {
  for (std::uint32_t character = 0; character < 0x110000; ++character) {
    const bool surrogate = character >= 0xd800 && character < 0xe000;
    ASSERT_EQ(is_utf8(utf8_of(character)), !surrogate) << character;
  }
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));
  EXPECT_FALSE(is_utf8("\xe0\x80\x80"));
  EXPECT_FALSE(is_utf8("\xf0\x80\x80\x80"));
}

}  // namespace
}  // namespace cosformer::data
