#include "data/tokenizers/sentencepiece_model.h"

#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/corpus_fixture.h"
#include "data/foreign_sentencepiece.h"
#include "data/tokenizers/tokenizer_sentencepiece.h"

namespace cosformer::data {
namespace {

using cosformer::testing::foreign_sentencepiece;
using cosformer::testing::message_of;
using cosformer::testing::random_prose;

class ForeignSentencePiece : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!sentencepiece_available()) GTEST_SKIP() << "built without SentencePiece";
  }
};

// As the library's own defaults make them: NFKC, a space before the text, no tokens for bytes.
TEST_F(ForeignSentencePiece, ModelsWithNormalisationDoWhatTheySay) {
  std::mt19937 random(4);
  const std::string model = foreign_sentencepiece(random_prose(300, random), {{"vocab_size", "60"}});
  const SentencePieceModelFile file = parse_sentencepiece_model(model);
  EXPECT_TRUE(file.normalizes);
  EXPECT_TRUE(file.add_dummy_prefix);
  EXPECT_FALSE(file.byte_fallback);
  ASSERT_EQ(file.pieces.size(), 60U);
  EXPECT_EQ(file.pieces[0].type, PieceType::kUnknown);

  const TokenizerPointer tokenizer = parse_sentencepiece(model, "m");
  EXPECT_EQ(tokenizer->cuts(), TextCuts::kAtDocuments);
  EXPECT_EQ(tokenizer->token_name(tokenizer->end_of_document()), "</s>");
  EXPECT_EQ(tokenizer->mask(), 60);  // the model has none: it is added
  EXPECT_EQ(tokenizer->vocabulary(), 61);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the  banering\u3000to")), "the banering to");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the z")), "the  \u2047 ");
}

TEST_F(ForeignSentencePiece, ContradictionsAreRefused) {
  const auto reason = [](const std::string& bytes) {
    return message_of<UserError>([&] { parse_sentencepiece_model(bytes); });
  };
  // A piece: field 1 of length n, in it field 1 the text, field 3 the type.
  const auto piece = [](const std::string& text, char type) {
    const std::string body = std::string("\x0a") + static_cast<char>(text.size()) + text + "\x18" + type;
    return std::string("\x0a") + static_cast<char>(body.size()) + body;
  };
  const std::string unknown = piece("<unk>", 2);
  EXPECT_EQ(parse_sentencepiece_model(unknown + piece("a", 1)).pieces.size(), 2U);
  EXPECT_EQ(reason(""), "it has 0 pieces for unknown text; expected one");
  EXPECT_EQ(reason(unknown + piece("a", 1) + piece("a", 1)), "it has a piece twice");
  EXPECT_EQ(reason(unknown + piece("", 1)), "piece 1 is empty");
  EXPECT_EQ(reason(unknown + piece("\xff", 1)), "piece 1 is not text");
  EXPECT_EQ(reason(unknown + piece("a", 9)), "piece 1 is of an unknown type");
  EXPECT_EQ(reason(unknown + "\x0a\x7f"), "it is cut short");
  EXPECT_EQ(reason(std::string(11, '\xff')), "it has a number that does not end");
  EXPECT_EQ(reason(unknown + std::string("\x12\0\x12\0", 4)), "it has its settings twice");
  EXPECT_EQ(reason(unknown + std::string("\x1a\x06\x12\x04\xff\xff\0\0", 8)), "its table of characters is damaged");
  EXPECT_EQ(reason(unknown + "\x12\x03\x98\x02\x01"), "it does not have a piece for each byte");
}

}  // namespace
}  // namespace cosformer::data
