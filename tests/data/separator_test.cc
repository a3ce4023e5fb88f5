// Tables whose columns are separated by something else than their names say, and texts that are not UTF-8.
#include "data/readers/separator.h"

#include <gtest/gtest.h>

#include "data/corpus/corpus.h"
#include "data/readers/unlabelled/prediction_input.h"
#include "data/task_fixture.h"

namespace cosformer::data {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::Sizes;
using cosformer::testing::sizes_of;

std::string table(const std::string& separator, const std::string& text = "some, words") {
  std::string rows = "text" + separator + "label\n";
  for (int i = 0; i < 20; ++i) rows += text + std::to_string(i) + separator + (i % 2 == 0 ? "a" : "b") + "\n";
  return rows;
}

class Separator : public cosformer::testing::TaskFixture {
 protected:
  DataConfig own(const std::string& name, const std::string& separator) const {
    DataConfig result = config("text_files", name);
    result.separator = separator;
    return result;
  }
};

TEST_F(Separator, IsAsItIsSet) {
  const std::pair<const char*, const char*> cases[] = {
      {"semicolon", ";"}, {"bar", "|"}, {"tab", "\t"}, {"\\t", "\t"}, {"#", "#"}};
  for (const auto& [name, separator] : cases) {
    for (const char* file : {"a.csv", "a.tsv", "a.txt"}) {
      write(file, table(separator));
      EXPECT_EQ(sizes_of(open_task(own(file, name))), (Sizes{16, 2, 2})) << name << " in " << file;
    }
  }
}

TEST_F(Separator, KeepsQuotes) {
  write("a.csv", table(";", "\"one; two\""));
  EXPECT_HAS(refusal(own("a.csv", "semicolon")), "text follows a closing quote");
  write("a.csv", "text;label\n\"one; two\";a\n\"three\";b\n\"four\";a\n\"five\";b\n");
  EXPECT_EQ(open_task(own("a.csv", "semicolon")).max_length, 8);
}

TEST_F(Separator, OfNumbers) {
  std::string rows;
  for (int i = 0; i < 20; ++i) rows += "up;1;2\n";
  write("a.csv", rows);
  DataConfig numbers = config("token_sequences", "a.csv");
  EXPECT_HAS(refusal(numbers), "set data.separator=semicolon");
  write("b.csv", "up;1;2\ndown;2;1\nup;1;1\ndown;2;2\n");
  numbers = config("token_sequences", "b.csv");
  numbers.separator = "semicolon";
  EXPECT_EQ(open_task(numbers).max_length, 2);
  // What a trained model is asked about is separated likewise.
  write("new.csv", "1;2;2\n");
  const DatasetInfo info = open_task(numbers).train->info();
  EXPECT_EQ(read_prediction_input(directory_.file("new.csv"), numbers, info, {}).dataset->lengths(0).first, 3);
}

TEST_F(Separator, ThatIsEvidentlyAnotherIsNamed) {
  write("a.csv", table(";"));
  const std::string message = refusal(own("a.csv", "auto"));
  EXPECT_HAS(message, "there is no column 'text'");
  EXPECT_HAS(message, "split at a comma its lines have one column, at a semicolon they have 2");
  EXPECT_HAS(message, "set data.separator=semicolon");
  write("a.tsv", table(",", "words"));
  EXPECT_HAS(refusal(own("a.tsv", "auto")), "split at a tab its lines have one column");
  DataConfig numbered = own("a.csv", "auto");
  numbered.text_column = "1";
  numbered.label_column = "2";
  EXPECT_HAS(refusal(numbered), "expected at least 2; split at a comma");
  // No separator is in sight: no guess.
  write("b.csv", "words\nand more\n");
  EXPECT_EQ(refusal(own("b.csv", "auto")).find("data.separator"), std::string::npos);
}

TEST_F(Separator, ThatIsNoneIsRefused) {
  write("a.csv", table(","));
  for (const char* wrong : {"", "x", "7", "\"", "\n", ";;", "kommas"}) {
    EXPECT_HAS(refusal(own("a.csv", wrong)), "expected auto, tab, comma, semicolon, bar, space") << wrong;
  }
  write("a.jsonl", "{\"text\": \"a\", \"label\": 1}\n");
  EXPECT_HAS(refusal(own("a.jsonl", "comma")), "it is JSONL, which has no data.separator");
}

std::string wide(const std::string& text, bool big) {
  std::string result;
  for (const char c : text) result += big ? std::string(1, '\0') + c : c + std::string(1, '\0');
  return result;
}

TEST_F(Separator, TextsInUtf16AreNamedAsSuch) {
  const std::string rows = table("\t");
  const std::pair<std::string, const char*> cases[] = {{"\xff\xfe" + wide(rows, false), "UTF-16"},
                                                       {"\xfe\xff" + wide(rows, true), "UTF-16"},
                                                       {wide(rows, false), "UTF-16LE"},
                                                       {wide(rows, true), "UTF-16BE"},
                                                       {std::string("\xff\xfe\0\0t\0\0\0", 8), "UTF-32"}};
  for (const auto& [content, name] : cases) {
    const std::string expected = std::string("it is ") + name + " text; expected UTF-8. Convert it: iconv -f " + name;
    write("a.tsv", content);
    EXPECT_HAS(refusal(own("a.tsv", "auto")), expected);
    EXPECT_HAS(refusal(config("value_sequences", "a.tsv")), expected);
    EXPECT_HAS(message_of<UserError>([&] {
                 read_prediction_input(directory_.file("a.tsv"), own("a.tsv", "auto"), {}, {"lines", false});
               }),
               expected);
    CorpusOptions corpus;
    corpus.train = {directory_.file("a.tsv")};
    corpus.cache_folder = directory_.file("cache");
    EXPECT_HAS(message_of<UserError>([&] { open_corpus(corpus, byte_tokenizer()); }), expected);
  }
  // Bytes that are no text at all are nobody's encoding.
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 7919 >> 4);
  write("a.txt", bytes);
  CorpusOptions corpus;
  corpus.train = {directory_.file("a.txt")};
  corpus.cache_folder = directory_.file("cache");
  EXPECT_NO_THROW(open_corpus(corpus, byte_tokenizer()));
}

}  // namespace
}  // namespace cosformer::data
