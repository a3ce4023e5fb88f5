// Inputs of predictions: every form that is accepted, from files and standard input, and what is refused.
#include "data/readers/unlabelled/prediction_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/dataset_content.h"
#include "data/image_files.h"
#include "data/readers/images/image_sequence.h"
#include "data/tasks/listops/listops.h"

namespace cosformer::data {
namespace {

using cosformer::testing::idx_bytes;
using cosformer::testing::message_of;
using cosformer::testing::png_bytes;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::text_of;
using cosformer::testing::write_bytes;
using ::testing::IsSubstring;
using Names = std::vector<std::string>;
using Labels = std::vector<std::int32_t>;

#define EXPECT_HAS(text, part) EXPECT_PRED_FORMAT2(IsSubstring, part, text)

DatasetInfo text_info(bool pairs = false) {
  DatasetInfo info;
  info.name = "text";
  info.vocabulary = kByteVocabulary;
  info.pairs = pairs;
  info.classes = {"bad", "good"};
  return info;
}

DatasetInfo listops_info() {
  DatasetInfo info;
  info.name = "listops";
  info.vocabulary = listops::kSymbols + kFirstToken;
  for (int digit = 0; digit < 10; ++digit) info.classes.push_back(std::to_string(digit));
  return info;
}

DataConfig task(const std::string& name) {
  DataConfig config;
  config.task = name;
  return config;
}

Labels labels_of(const Dataset& dataset) {
  Labels labels;
  for (std::size_t i = 0; i < dataset.size(); ++i) labels.push_back(dataset.label(i));
  return labels;
}

Names texts_of(const Dataset& dataset) {
  Names texts;
  for (std::size_t i = 0; i < dataset.size(); ++i) texts.push_back(text_of(dataset.get(i).first));
  return texts;
}

class PredictionInputTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = directory_.file(name);
    std::filesystem::create_directories(path.parent_path());
    write_bytes(path.string(), content);
    return path.string();
  }
  const TemporaryDirectory directory_;
};

// Standard input replaced by a pipe that holds `content` (which must fit into one).
class StandardInput {
 public:
  explicit StandardInput(const std::string& content) : saved_(::dup(STDIN_FILENO)) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    const ssize_t written = ::write(ends[1], content.data(), content.size());
    ::close(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
    if (written != static_cast<ssize_t>(content.size())) throw std::runtime_error("the pipe is too small");
  }
  ~StandardInput() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

bool all_labelled(const PredictionInput& input) {
  const Labels labels = labels_of(*input.dataset);
  return std::find(labels.begin(), labels.end(), kNoLabel) == labels.end();
}

TEST_F(PredictionInputTest, LinesOfText) {
  const auto input =
      read_prediction_input(file("a.txt", "one\r\n\n  \ntwo words\tand more\n"), task("text"), text_info());
  EXPECT_EQ(texts_of(*input.dataset), (Names{"one", "two words\tand more"}));
  EXPECT_EQ(input.names, (Names{"1", "4"}));
  EXPECT_EQ(labels_of(*input.dataset), (Labels{kNoLabel, kNoLabel}));
  EXPECT_FALSE(all_labelled(input));
  DataConfig cut = task("text_files");
  cut.max_length = 2;
  EXPECT_EQ(texts_of(*read_prediction_input(directory_.file("a.txt"), cut, text_info()).dataset), (Names{"on", "tw"}));
}

TEST_F(PredictionInputTest, StandardInputIsLinesUnlessSaidOtherwise) {
  {
    const StandardInput redirected("first\nsecond\n");
    EXPECT_EQ(texts_of(*read_prediction_input("-", task("text"), text_info()).dataset), (Names{"first", "second"}));
  }
  {
    const StandardInput redirected("{\"text\": \"x\", \"label\": \"good\"}\n");
    const auto input = read_prediction_input("-", task("text_files"), text_info(), {.format = "jsonl"});
    EXPECT_EQ(labels_of(*input.dataset), (Labels{1}));
    EXPECT_TRUE(all_labelled(input));
  }
  const StandardInput redirected("( [MAX 1 2 ] )\n[MAX 1\n");
  EXPECT_HAS(message_of<UserError>([&] { read_prediction_input("-", task("listops"), listops_info()); }),
             "'standard input' line 2: ");
}

TEST_F(PredictionInputTest, TablesWithAndWithoutLabels) {
  const auto labelled =
      read_prediction_input(file("a.csv", "label,text\ngood,x\nbad,y\n"), task("text_files"), text_info());
  EXPECT_EQ(labels_of(*labelled.dataset), (Labels{1, 0}));
  EXPECT_EQ(labelled.names, (Names{"2", "3"}));
  EXPECT_TRUE(all_labelled(labelled));
  const auto bare = read_prediction_input(file("b.tsv", "id\ttext\n7\tx\n"), task("text_files"), text_info());
  EXPECT_EQ(labels_of(*bare.dataset), (Labels{kNoLabel}));
  const auto mixed = read_prediction_input(
      file("c.jsonl", "{\"text\": \"x\"}\n{\"text\": \"y\", \"label\": \"bad\"}\n"), task("text_files"), text_info());
  EXPECT_EQ(labels_of(*mixed.dataset), (Labels{kNoLabel, 0}));
  EXPECT_FALSE(all_labelled(mixed));

  DataConfig numbered = task("text_files");
  numbered.text_column = "1";
  numbered.label_column = "2";
  const auto columns = read_prediction_input(file("d.tsv", "x\tgood\ny\n"), numbered, text_info());
  EXPECT_EQ(labels_of(*columns.dataset), (Labels{1, kNoLabel}));
}

TEST_F(PredictionInputTest, UnknownLabelsAreCountedAndNoReasonToStop) {
  const auto table = read_prediction_input(file("a.csv", "text,label\nx,ugly\ny,good\nz,odd\nw,ugly\n"),
                                           task("text_files"), text_info());
  EXPECT_EQ(labels_of(*table.dataset), (Labels{kNoLabel, 1, kNoLabel, kNoLabel}));
  EXPECT_EQ(table.unknown.rows, 3U);
  EXPECT_EQ(table.unknown.names, (Names{"ugly", "odd"}));
  EXPECT_EQ(table.report.rows_skipped, 0U);

  DatasetInfo numbers;
  numbers.content = Content::kValues;
  numbers.classes = {"saw", "sine"};
  const auto sequences =
      read_prediction_input(file("b.csv", "saw,1\nsquare,2\n"), task("value_sequences"), numbers, {.labelled = true});
  EXPECT_EQ(labels_of(*sequences.dataset), (Labels{0, kNoLabel}));
  EXPECT_EQ(sequences.unknown.rows, 1U);
}

TEST_F(PredictionInputTest, BlankAndLeftOutLinesAreGaps) {
  const auto input = read_prediction_input(file("a.txt", "\n[MAX 1 2 ]\n\nwrong\n[MIN 1 2 ]\n \n"), task("listops"),
                                           listops_info(), {.skip_bad_rows = true});
  EXPECT_EQ(input.names, (Names{"2", "5"}));
  Names gaps;
  std::vector<std::size_t> before;
  for (const PredictionGap& gap : input.gaps) {
    gaps.push_back(gap.name);
    before.push_back(gap.before);
  }
  EXPECT_EQ(gaps, (Names{"1", "3", "4", "6"}));
  EXPECT_EQ(before, (std::vector<std::size_t>{0, 1, 1, 2}));
}

TEST_F(PredictionInputTest, PublishedLayouts) {
  const auto imdb =
      read_prediction_input(file("imdb.tsv", "1\t9\t0\tfine film\n0\t2\t1\tdull\n"), task("text"), text_info());
  EXPECT_EQ(texts_of(*imdb.dataset), (Names{"fine film", "dull"}));
  EXPECT_EQ(labels_of(*imdb.dataset), (Labels{1, 0}));
  EXPECT_EQ(imdb.names, (Names{"1", "2"}));
  const auto aan =
      read_prediction_input(file("aan.tsv", "1.0\tP1\tP2\tone\ttwo\n"), task("retrieval"), text_info(true));
  EXPECT_EQ(text_of(aan.dataset->get(0).second), "two");
  EXPECT_EQ(labels_of(*aan.dataset), (Labels{1}));
}

TEST_F(PredictionInputTest, TablesRefused) {
  const auto refusal = [&](const std::string& name, const std::string& content, const PredictionOptions& options = {}) {
    return message_of<UserError>(
        [&] { read_prediction_input(file(name, content), task("text_files"), text_info(), options); });
  };
  EXPECT_HAS(refusal("a.csv", "words,label\nx,good\n"), "there is no column 'text'; it has 'words', 'label'");
  EXPECT_HAS(refusal("a.txt", "\n\n"), "it holds no usable row");
  EXPECT_HAS(refusal("a.txt", "x", {.format = "xml"}), "expected auto, lines, tsv, csv or jsonl");
  EXPECT_HAS(message_of<UserError>([] { read_prediction_input("nowhere.txt", task("text"), text_info()); }),
             "there is no such file");
}

TEST_F(PredictionInputTest, Pairs) {
  const auto lines = read_prediction_input(file("a.txt", "one\ttwo\n"), task("text_pairs"), text_info(true));
  EXPECT_EQ(text_of(lines.dataset->get(0).second), "two");
  for (const char* name : {"text_pairs", "retrieval"}) {
    const auto table = read_prediction_input(file("a.tsv", "text\tsecond_text\nx\tyy\n"), task(name), text_info(true));
    EXPECT_EQ(text_of(table.dataset->get(0).second), "yy");
    EXPECT_TRUE(table.dataset->info().pairs);
  }
  EXPECT_HAS(message_of<UserError>([&] {
               read_prediction_input(file("b.txt", "one\ttwo\nalone\n"), task("retrieval"), text_info(true));
             }),
             "b.txt' line 2: it is 'alone'; expected two texts with a tab between them");
}

TEST_F(PredictionInputTest, SourcesOfTextToText) {
  DatasetInfo info = text_info();
  info.classes.clear();
  const auto lines = read_prediction_input(file("a.txt", "one two\nthree\n"), task("text_to_text"), info);
  EXPECT_EQ(texts_of(*lines.dataset), (Names{"one two", "three"}));
  EXPECT_FALSE(lines.dataset->info().pairs);
  // With or without what is to be written.
  for (const char* rows : {"source\nx\n", "target\tsource\nyy\tx\n"}) {
    const auto table = read_prediction_input(file("a.tsv", rows), task("text_to_text"), info);
    EXPECT_EQ(texts_of(*table.dataset), (Names{"x"}));
    EXPECT_FALSE(all_labelled(table));
  }
  EXPECT_HAS(
      message_of<UserError>([&] { read_prediction_input(file("b.tsv", "other\nx\n"), task("text_to_text"), info); }),
      "there is no column 'source'");
}

TEST_F(PredictionInputTest, ListOpsWithItsValue) {
  const auto input =
      read_prediction_input(file("a.txt", "[MAX 2 9 [MIN 4 7 ] 0 ]\n( ( ( [SM 8 ) 5 ) ] )\n[MED 1 2 3 ]\t7\n"),
                            task("listops"), listops_info());
  EXPECT_EQ(labels_of(*input.dataset), (Labels{9, 3, 2}));
  EXPECT_TRUE(all_labelled(input));
  const std::string bad = file("b.txt", "[MAX 1 ]\n[FOO 1 ]\n[MAX 1 2\n");
  EXPECT_HAS(message_of<UserError>([&] { read_prediction_input(bad, task("listops"), listops_info()); }),
             "b.txt' line 2: ");
  PredictionOptions skip;
  skip.skip_bad_rows = true;
  const auto rest = read_prediction_input(bad, task("listops"), listops_info(), skip);
  EXPECT_EQ(rest.report.rows_skipped, 2U);
  EXPECT_EQ(rest.names, (Names{"1"}));
}

TEST_F(PredictionInputTest, PngFilesAndFolders) {
  const DatasetInfo info = describe_images("images", 2, 2, {"a", "b"});
  const std::string png = png_bytes(2, 2, PNG_FORMAT_GRAY, {1, 2, 3, 4});
  const auto one = read_prediction_input(file("one.png", png), task("fashion_mnist"), info);
  EXPECT_EQ(one.names, (Names{"one.png"}));
  EXPECT_EQ(testing::token_ids(one.dataset->get(0).first), (std::vector<std::int32_t>{3, 4, 5, 6}));
  {
    const StandardInput redirected(png);
    EXPECT_EQ(read_prediction_input("-", task("fashion_mnist"), info).names, (Names{"-"}));
  }
  file("folder/10.png", png);
  file("folder/9.png", png);
  file("folder/11.png", png_bytes(2, 1, PNG_FORMAT_GRAY, {1, 2}));
  const std::string folder = directory_.file("folder");
  EXPECT_HAS(message_of<UserError>([&] { read_prediction_input(folder, task("png_images"), info); }),
             "11.png': it has 2 x 1 pixels; expected 2 x 2 as in training");
  PredictionOptions skip;
  skip.skip_bad_rows = true;
  EXPECT_EQ(read_prediction_input(folder, task("png_images"), info, skip).names, (Names{"9.png", "10.png"}));
  file("empty/readme", "");
  EXPECT_HAS(message_of<UserError>([&] { read_prediction_input(directory_.file("empty"), task("image"), info); }),
             "no file that ends in .png");
}

TEST_F(PredictionInputTest, IdxAndCifar) {
  const DatasetInfo info = describe_images("images", 2, 2, {"a", "b"});
  const auto idx = read_prediction_input(file("x", idx_bytes({2, 2, 2}, "abcdefgh")), task("idx_images"), info);
  EXPECT_EQ(idx.names, (Names{"1", "2"}));
  EXPECT_FALSE(all_labelled(idx));
  EXPECT_EQ(idx.dataset->info().classes, info.classes);
  EXPECT_HAS(message_of<UserError>([&] {
               read_prediction_input(file("y", idx_bytes({2, 4, 1}, "abcdefgh")), task("idx_images"), info);
             }),
             "its images have 1 x 4 pixels; expected 2 x 2 as in training");
  EXPECT_HAS(message_of<UserError>([&] { read_prediction_input(file("z", "text"), task("idx_images"), info); }),
             "it is no image; expected PNG, IDX or a CIFAR-10 binary");

  const std::string records = file("c.bin", std::string(1, '\3') + std::string(1024, 'x'));
  const DatasetInfo cifar = describe_images(
      "cifar10", 32, 32, {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"});
  EXPECT_EQ(labels_of(*read_prediction_input(records, task("image"), cifar).dataset), (Labels{3}));
  EXPECT_HAS(message_of<UserError>([&] { read_prediction_input(records, task("idx_images"), info); }),
             "trained on other classes");
}

// The training data's own file, with its labels in a column known by its number.
TEST_F(PredictionInputTest, SequencesWithLabels) {
  DatasetInfo info;
  info.name = "numbers";
  info.content = Content::kValues;
  info.classes = {"saw", "sine"};
  const DataConfig first = task("value_sequences");
  const auto words = read_prediction_input(file("a.csv", "sine ,0.5,1\nsaw,2\n"), first, info);
  EXPECT_EQ(labels_of(*words.dataset), (Labels{1, 0}));
  EXPECT_EQ(words.dataset->get(0).first.size, 2U);
  EXPECT_TRUE(words.note.empty());
  EXPECT_FALSE(all_labelled(read_prediction_input(file("b.csv", "0.5,1\n2\n"), first, info)));

  // A number may be a label or not: only the user knows.
  info.classes = {"0", "4"};
  DataConfig last = first;
  last.label_column = "4";
  const std::string path = file("c.csv", "2,3,7,4\n2,3,4,0\n");
  const auto numbers = read_prediction_input(path, last, info);
  EXPECT_FALSE(all_labelled(numbers));
  EXPECT_EQ(numbers.dataset->get(0).first.size, 4U);
  EXPECT_HAS(numbers.note, "--labelled");
  PredictionOptions said;
  said.labelled = true;
  const auto labelled = read_prediction_input(path, last, info, said);
  EXPECT_EQ(labels_of(*labelled.dataset), (Labels{1, 0}));
  EXPECT_EQ(labelled.dataset->get(1).first.size, 3U);
  EXPECT_TRUE(labelled.note.empty());
}

TEST_F(PredictionInputTest, Sequences) {
  DatasetInfo info;
  info.content = Content::kTokens;
  info.vocabulary = 10;
  info.classes = {"down", "up"};
  const auto bare = read_prediction_input(file("a.csv", "1,2,3\n4,5\n"), task("token_sequences"), info);
  EXPECT_EQ(testing::token_ids(bare.dataset->get(1).first), (std::vector<std::int32_t>{6, 7}));
  EXPECT_EQ(labels_of(*bare.dataset), (Labels{kNoLabel, kNoLabel}));
  EXPECT_EQ(bare.dataset->info().vocabulary, 10);
  DataConfig named = task("token_sequences");
  named.label_column = "kind";
  const auto labelled = read_prediction_input(file("b.csv", "x,kind,y\n1,up,2\n"), named, info);
  EXPECT_EQ(labels_of(*labelled.dataset), (Labels{1}));
  EXPECT_EQ(testing::token_ids(labelled.dataset->get(0).first), (std::vector<std::int32_t>{3, 4}));
  EXPECT_EQ(read_prediction_input(directory_.file("a.csv"), named, info).dataset->size(), 2U);
  EXPECT_HAS(
      message_of<UserError>([&] { read_prediction_input(file("c.csv", "1,8\n"), task("token_sequences"), info); }),
      "c.csv' line 1: column 2 is 8; expected a token from 0 to 7");
}

}  // namespace
}  // namespace cosformer::data
