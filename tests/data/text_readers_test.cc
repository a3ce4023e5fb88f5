// Text from TSV, CSV, JSONL and the published IMDb and AAN layouts; every kind of broken row.
#include "data/readers/text_readers.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/dataset_content.h"

namespace cosformer::data {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::text_of;
using cosformer::testing::token_ids;
using cosformer::testing::write_bytes;
using ::testing::IsSubstring;

#define EXPECT_HAS(text, part) EXPECT_PRED_FORMAT2(IsSubstring, part, text)

struct Plain {
  std::string first, second;
  std::int32_t label;
  bool operator==(const Plain&) const = default;
};

std::vector<Plain> rows_of(const Loaded& loaded) {
  std::vector<Plain> rows;
  for (std::size_t i = 0; i < loaded.dataset->size(); ++i) {
    const Example example = loaded.dataset->get(i);
    rows.push_back({text_of(example.first), text_of(example.second), example.label});
  }
  return rows;
}

class TextReaders : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    write_bytes(directory_.file(name), content);
    return directory_.file(name);
  }
  std::string refusal(const std::string& path, const TextOptions& options = {}) const {
    return message_of<UserError>([&] { load_text(path, options); });
  }
  const TemporaryDirectory directory_;
};

using Names = std::vector<std::string>;

TEST_F(TextReaders, TsvWithHeader) {
  const Loaded loaded = load_text(file("a.tsv", "label\ttext\r\nham\t\"hi\" \xc3\xa9\r\nspam\tbuy,now\r\n"));
  EXPECT_EQ(rows_of(loaded), (std::vector<Plain>{{"\"hi\" \xc3\xa9", "", 0}, {"buy,now", "", 1}}));
  EXPECT_EQ(loaded.dataset->info().classes, (Names{"ham", "spam"}));
  EXPECT_EQ(loaded.dataset->info().vocabulary, 258);
  EXPECT_EQ(token_ids(loaded.dataset->get(0).first),
            (std::vector<std::int32_t>{'"' + 2, 'h' + 2, 'i' + 2, '"' + 2, ' ' + 2, 0xc3 + 2, 0xa9 + 2}));
}

TEST_F(TextReaders, CsvByNumberWithTwoTextsAndNumericClasses) {
  TextOptions options;
  options.text_column = "2";
  options.second_text_column = "3";
  options.label_column = "1";
  const Loaded loaded = load_text(file("a.csv", "10,\"a,\nb\",c\n9,d,\"e\"\"\"\n"), options);
  EXPECT_EQ(rows_of(loaded), (std::vector<Plain>{{"a,\nb", "c", 1}, {"d", "e\"", 0}}));
  EXPECT_EQ(loaded.dataset->info().classes, (Names{"9", "10"})) << "numbers sort by value";
  EXPECT_TRUE(loaded.dataset->info().pairs);
}

TEST_F(TextReaders, NumbersWithASaidHeader) {
  TextOptions options;
  options.text_column = "1";
  options.label_column = "2";
  options.header = true;
  const Loaded loaded = load_text(file("a.tsv", "sentence\tlabel\nx\t1\n"), options);
  EXPECT_EQ(loaded.report.rows_used, 1U);
}

TEST_F(TextReaders, JsonLines) {
  const std::string content =
      "{\"text\": \"a\\u00e9\\n\", \"label\": true, \"more\": [1]}\n\n  \n{\"label\": 3, \"text\": \"b\"}\n";
  const Loaded loaded = load_text(file("a.jsonl", content));
  EXPECT_EQ(rows_of(loaded), (std::vector<Plain>{{"a\xc3\xa9\n", "", 1}, {"b", "", 0}}));
  EXPECT_EQ(loaded.dataset->info().classes, (Names{"3", "true"}));
}

TEST_F(TextReaders, GzipIsUnpacked) {
  const std::string path = directory_.file("a.csv.gz");
  gzFile out = ::gzopen(path.c_str(), "wb");
  ::gzputs(out, "text,label\nhello,x\n");
  ::gzclose(out);
  EXPECT_EQ(rows_of(load_text(path)), (std::vector<Plain>{{"hello", "", 0}}));
  const std::string packed = testing::read_bytes(path);
  EXPECT_HAS(refusal(file("cut.csv.gz", packed.substr(0, packed.size() - 6))), "gzip data is damaged or cut short");
}

TEST_F(TextReaders, GivenClassesLimitsAndMissingLabels) {
  TextOptions options;
  options.classes = {"z", "a"};
  options.max_length = 3;
  const std::string path = file("a.csv", "text,label\nlonger,a\nb,z\n");
  const Loaded loaded = load_text(path, options);
  EXPECT_EQ(rows_of(loaded), (std::vector<Plain>{{"lon", "", 1}, {"b", "", 0}}));
  EXPECT_EQ(loaded.dataset->info().classes, (Names{"z", "a"}));
  options.classes = {"a", "b"};
  EXPECT_HAS(refusal(path, options), "line 3: the label is 'z'; expected one of a, b");
  options.classes = {"a", "a"};
  EXPECT_HAS(refusal(path, options), "the class 'a' is named twice");
  options.classes.clear();
  options.label_column = "";
  EXPECT_EQ(load_text(path, options).dataset->label(0), kNoLabel);
}

TEST_F(TextReaders, BrokenTables) {
  const std::string csv = file("a.csv", "text,label\na,x\nb\n,y\nc,\n\"d\"e,x\n\"open,x\n");
  EXPECT_HAS(refusal(csv), "'" + csv + "' line 3: it has 1 columns; expected 2 as in the header");
  EXPECT_HAS(refusal(csv), "--skip-bad-rows");
  TextOptions skip;
  skip.rows.skip_bad_rows = true;
  const Loaded loaded = load_text(csv, skip);
  EXPECT_EQ(loaded.report.rows_used, 1U);
  EXPECT_EQ(loaded.report.rows_skipped, 5U);
  ASSERT_EQ(loaded.report.first_reasons.size(), 5U);
  EXPECT_HAS(loaded.report.first_reasons[1], "line 4: the text is empty; expected at least one character");
  EXPECT_HAS(loaded.report.first_reasons[2], "line 5: the label is empty; expected the name of a class");
  EXPECT_HAS(loaded.report.first_reasons[3], "line 6: text follows a closing quote");
  EXPECT_HAS(loaded.report.first_reasons[4], "line 7: a quote is opened and never closed");

  TextOptions third;
  third.text_column = "3";
  third.label_column = "1";
  EXPECT_HAS(refusal(file("b.tsv", "x\ty\n"), third), "line 1: it has 2 columns; expected at least 3");
  EXPECT_HAS(refusal(file("c.tsv", "body\tlabel\nx\ty\n")), "there is no column 'text'; it has 'body', 'label'");
  EXPECT_HAS(refusal(file("d.csv", "\"text\"x,label\n")), "its header cannot be split");
  EXPECT_HAS(refusal(file("empty.csv", "")), "it is empty; expected a header and rows");
  EXPECT_HAS(refusal(file("e.csv", "text,label\n")), "it holds no usable row");
  EXPECT_HAS(refusal(file("f.dat", "")), "its name does not tell its format");
  EXPECT_HAS(refusal(directory_.file("absent.csv")), "there is no such file");
  EXPECT_HAS(message_of<UserError>([&] {
               TextOptions options;
               options.format = TextFormat::kCsv;
               load_text(directory_.path(), options);
             }),
             "it is a folder");
}

TEST_F(TextReaders, TooManyClasses) {
  std::string rows = "text,label\n";
  for (int i = 0; i <= 1000; ++i) rows += "t,unique" + std::to_string(i) + "\n";
  EXPECT_HAS(refusal(file("a.csv", rows)), "line 1002: the label 'unique1000' would be class 1001");
}

TEST_F(TextReaders, BrokenJsonLines) {
  const auto reason = [&](const std::string& line) { return refusal(file("a.jsonl", line + "\n")); };
  EXPECT_HAS(reason("{\"text\": "), "line 1: it is not valid JSON");
  EXPECT_HAS(reason("[1]"), "it is of type array; expected a JSON object");
  EXPECT_HAS(reason("{\"label\": 1}"), "the object has no key 'text'");
  EXPECT_HAS(reason("{\"text\": null, \"label\": 1}"), "the value of 'text' is of type null");
  EXPECT_HAS(reason("{\"text\": \"\", \"label\": 1}"), "the text is empty");
  EXPECT_HAS(reason(std::string(100000, '[')), "not valid JSON");
}

TEST_F(TextReaders, ImdbFolderAndTsv) {
  for (const char* folder : {"train", "train/neg", "train/pos", "train/unsup"}) {
    std::filesystem::create_directory(directory_.file(folder));
  }
  file("train/neg/10_2.txt", "bad");
  file("train/neg/9_1.txt", "worse");
  file("train/pos/0_9.txt", "good");
  file("train/unsup/0_0.txt", "unrated");
  const Loaded loaded = load_imdb_folder(directory_.path(), ImdbPart::kTrain);
  EXPECT_EQ(rows_of(loaded), (std::vector<Plain>{{"worse", "", 0}, {"bad", "", 0}, {"good", "", 1}}));
  EXPECT_EQ(loaded.dataset->info().classes, (Names{"neg", "pos"}));
  EXPECT_HAS(message_of<UserError>([&] { load_imdb_folder(directory_.path(), ImdbPart::kTest); }), "no such folder");
  file("train/pos/1_9.txt", "");
  EXPECT_HAS(message_of<UserError>([&] { load_imdb_folder(directory_.path(), ImdbPart::kTrain); }),
             "pos/1_9.txt': the text is empty");

  ImdbOptions options;
  options.max_length = 4;
  const std::string tsv = file("imdb.tsv", "0\t3\t17\tbad film\npos\tgood\n");
  EXPECT_EQ(rows_of(load_imdb_tsv(tsv, options)), (std::vector<Plain>{{"bad ", "", 0}, {"good", "", 1}}));
  const auto reason = [&](const std::string& row) {
    return message_of<UserError>([&] { load_imdb_tsv(file("bad.tsv", row), options); });
  };
  EXPECT_HAS(reason("1\n"), "line 1: it has 1 columns; expected at least 2");
  EXPECT_HAS(reason("2\tx\n"), "the label is '2'; expected 0, 1, neg or pos");
  EXPECT_HAS(reason("1\t\n"), "the text is empty");
}

TEST_F(TextReaders, AanPairs) {
  const Loaded loaded = load_aan(file("aan.tsv", "1.0\tP1\tP2\tone \"text\ttwo\n0.0\tP3\tP4\tx\ty\n"));
  EXPECT_EQ(rows_of(loaded), (std::vector<Plain>{{"one \"text", "two", 1}, {"x", "y", 0}}));
  const auto reason = [&](const std::string& row) {
    return message_of<UserError>([&] { load_aan(file("bad.tsv", row)); });
  };
  EXPECT_HAS(reason("1.0\ta\tb\tc\n"), "line 1: it has 4 columns; expected 5");
  EXPECT_HAS(reason("0.5\ta\tb\tc\td\n"), "the label is '0.5'; expected 0.0 or 1.0");
  EXPECT_HAS(reason("1.0\ta\tb\tc\t\n"), "the text is empty");
}

}  // namespace
}  // namespace cosformer::data
