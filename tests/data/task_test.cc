// From settings to the three parts of a published or generated task: every layout that is accepted, and the messages
// about those that are not.
#include "data/tasks/task.h"

#include <set>

#include <gtest/gtest.h>

#include "data/dataset_content.h"
#include "data/image_files.h"
#include "data/task_fixture.h"
#include "data/tasks/listops/listops_tsv.h"

namespace cosformer::data {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::png_bytes;
using cosformer::testing::Sizes;
using cosformer::testing::sizes_of;
using cosformer::testing::text_of;
using Names = std::vector<std::string>;
using Task = cosformer::testing::TaskFixture;

std::multiset<std::string> texts_of(const Dataset& dataset) {
  std::multiset<std::string> texts;
  for (std::size_t i = 0; i < dataset.size(); ++i) texts.insert(text_of(dataset.get(i).first));
  return texts;
}

// Rows "label<TAB>rating<TAB>id<TAB>text", one of either class in turn.
std::string reviews(int count, const std::string& word) {
  std::string rows;
  for (int i = 0; i < count; ++i) {
    rows += std::to_string(i % 2) + "\t5\t" + std::to_string(i) + "\t" + word + std::to_string(i) + "\n";
  }
  return rows;
}

TEST_F(Task, SettingsReachTheConfig) {
  DataConfig config;
  Settings settings;
  add_settings(settings, config);
  settings.assign("data.task=text");
  settings.assign("data.max_length=100");
  settings.assign("data.lra_quirks=true");
  EXPECT_EQ(config.task, "text");
  EXPECT_EQ(effective_max_length(config), 100);
  EXPECT_TRUE(config.lra_quirks);
  EXPECT_HAS(message_of<UserError>([&] { settings.assign("data.task=imbd"); }), "text_files");
  EXPECT_HAS(message_of<UserError>([&] { settings.assign("data.text_colum=x"); }), "text_column");
  for (const auto& description : settings.descriptions()) EXPECT_FALSE(description.help.empty()) << description.key;
}

TEST_F(Task, UnknownTask) {
  EXPECT_HAS(refusal(config("pathfindr")), "there is no task 'pathfindr'; did you mean pathfinder?");
  EXPECT_HAS(message_of<UserError>([] { layout_of("x"); }), "expected one of listops, text, retrieval");
  for (const std::string& name : task_names()) EXPECT_FALSE(layout_of(name).empty());
}

TEST_F(Task, ImdbTsvHoldsValidationOutOfTraining) {
  write("train.tsv", reviews(20, "train"));
  write("test.tsv", reviews(6, "test"));
  const TaskData data = open_task(config("text"));
  EXPECT_EQ(sizes_of(data), (Sizes{18, 2, 6}));
  EXPECT_FALSE(data.valid_is_test);
  EXPECT_EQ(data.train->info().classes, (Names{"neg", "pos"}));
  std::multiset<std::string> both = texts_of(*data.train);
  both.merge(texts_of(*data.valid));
  EXPECT_EQ(std::set<std::string>(both.begin(), both.end()).size(), 20U);
  EXPECT_TRUE(both.contains("train0") && both.contains("train19"));
  EXPECT_TRUE(texts_of(*data.test).contains("test5"));
  EXPECT_HAS(data.description, "18 training, 2 validation, 6 test examples; 2 classes; length up to 7");
  EXPECT_TRUE(data.notes.empty());

  // The same from the path of the training file, and with another seed another part.
  DataConfig other = config("text", "train.tsv");
  EXPECT_EQ(texts_of(*open_task(other).valid), texts_of(*data.valid));
  other.split_seed = 3;
  EXPECT_NE(texts_of(*open_task(other).valid), texts_of(*data.valid));
}

TEST_F(Task, ImdbQuirk) {
  write("train.tsv", reviews(20, "train"));
  write("test.tsv", reviews(6, "test"));
  DataConfig quirks = config("text");
  quirks.lra_quirks = true;
  quirks.max_length = 6;
  const TaskData data = open_task(quirks);
  EXPECT_TRUE(data.valid_is_test);
  EXPECT_EQ(sizes_of(data), (Sizes{20, 6, 6}));
  EXPECT_EQ(texts_of(*data.valid), texts_of(*data.test));
  ASSERT_EQ(data.notes.size(), 2U);
  EXPECT_HAS(data.notes[0], "the validation part is the test part");
  EXPECT_HAS(data.notes[1], "10 texts are longer than 6 bytes (data.max_length) and were cut");
  EXPECT_EQ(data.max_length, 6);
}

TEST_F(Task, ImdbFolder) {
  for (const char* part : {"train", "test"}) {
    for (const char* kind : {"neg", "pos"}) {
      for (int i = 0; i < 4; ++i)
        write(std::string("aclImdb/") + part + "/" + kind + "/" + std::to_string(i) + "_1.txt", part);
    }
  }
  EXPECT_EQ(sizes_of(open_task(config("text"))), (Sizes{7, 1, 8}));
  EXPECT_EQ(sizes_of(open_task(config("text", "aclImdb"))), (Sizes{7, 1, 8}));
}

TEST_F(Task, MissingFilesAreNamedWithWhatIsAccepted) {
  EXPECT_HAS(refusal(config("text", "nowhere")), "cannot find the data of the task 'text' at '");
  EXPECT_HAS(refusal(config("text", "nowhere")), "aclImdb");
  EXPECT_HAS(refusal(config("retrieval")), "new_aan_pairs.{train,eval,test}.tsv");
  EXPECT_HAS(refusal(config("image")), "data_batch_{1,2,3,4,5}.bin");
  EXPECT_HAS(refusal(config("fashion_mnist")), "apt-get install dataset-fashion-mnist");
  EXPECT_HAS(refusal(config("text_files", "a.csv")), "data.text_column");
  EXPECT_HAS(refusal(config("png_images", "none")), "a folder of PNG files for each class");
  DataConfig none;
  none.task = "text_files";
  EXPECT_HAS(refusal(none), "no data was named (--data, or data.path); the task 'text_files' needs a file of");
}

TEST_F(Task, SettingsWithoutEffectAreRefused) {
  DataConfig wrong = config("listops");
  wrong.valid_path = "x";
  EXPECT_HAS(refusal(wrong), "data.valid_path is set, but the task 'listops' finds its parts by their names");
}

TEST_F(Task, AanPairs) {
  for (const char* part : {"train", "eval", "test"}) {
    write(std::string("new_aan_pairs.") + part + ".tsv",
          std::string("1.0\tP1\tP2\t") + part + "\tother\n0.0\tP1\tP2\tx\ty\n");
  }
  const TaskData data = open_task(config("retrieval"));
  EXPECT_EQ(sizes_of(data), (Sizes{2, 2, 2}));
  EXPECT_EQ(text_of(data.valid->get(0).first), "eval");
  EXPECT_TRUE(data.train->info().pairs);
}

TEST_F(Task, SameArticleStandIn) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += std::string(100, static_cast<char>('a' + i % 26)) + "\n\n";
  write("wiki.txt", text);
  DataConfig pairs = config("retrieval", "wiki.txt");
  pairs.retrieval_source = "same_article";
  pairs.max_length = 40;
  pairs.generate_train = 50;
  pairs.generate_valid = 10;
  pairs.generate_test = 12;
  const TaskData data = open_task(pairs);
  EXPECT_EQ(sizes_of(data), (Sizes{50, 10, 12}));
  for (std::size_t i = 0; i < 50; ++i) EXPECT_GE(data.train->lengths(i).first, 10);
  EXPECT_HAS(data.description, "a stand-in for AAN");
  EXPECT_HAS(data.notes.at(0), "do not compare with published ones");
  pairs.path = directory_.file("none.txt");
  EXPECT_HAS(refusal(pairs), "articles separated by blank lines");
}

std::string gray_records(int count) {
  std::string records;
  for (int i = 0; i < count; ++i) records += static_cast<char>(i % 10) + std::string(1024, static_cast<char>(i));
  return records;
}

TEST_F(Task, CifarInOneFileEndsWithItsTest) {
  write("gray.bin", gray_records(60));
  for (const std::string path : {"", "gray.bin"}) {
    const TaskData data = open_task(config("image", path));
    EXPECT_EQ(sizes_of(data), (Sizes{45, 5, 10}));
    EXPECT_EQ(testing::token_ids(data.test->get(0).first).at(0), 50 + kFirstToken);
    EXPECT_EQ(data.max_length, 1024);
  }
  DataConfig cut = config("image");
  cut.max_length = 100;
  EXPECT_HAS(refusal(cut), "data.max_length is 100, but an image is 1024 pixels");
}

TEST_F(Task, CifarBatches) {
  for (int i = 1; i <= 5; ++i) write("data_batch_" + std::to_string(i) + ".bin", gray_records(4));
  EXPECT_HAS(refusal(config("image")), "test_batch.bin");
  write("test_batch.bin", gray_records(3));
  EXPECT_EQ(sizes_of(open_task(config("image"))), (Sizes{18, 2, 3}));
}

TEST_F(Task, ListOpsIsGeneratedThenOpenedThenReadFromTsv) {
  DataConfig made = config("listops", "made");
  made.generate_train = 30;
  made.generate_valid = 4;
  made.generate_test = 5;
  made.generate_seed = 9;
  std::uint64_t last = 0;
  const TaskData data = open_task(made, [&](std::uint64_t done, std::uint64_t) { last = done; });
  EXPECT_EQ(sizes_of(data), (Sizes{30, 4, 5}));
  EXPECT_EQ(last, 39U);
  // Files made with any options are opened when the settings ask for none.
  EXPECT_EQ(sizes_of(open_task(config("listops", "made"))), (Sizes{30, 4, 5}));
  made.generate_seed = 8;
  EXPECT_HAS(refusal(made), "was generated with other options");

  write("published/x", "");
  write_listops_tsv(directory_.file("published/basic_train.tsv"), *data.train);
  write_listops_tsv(directory_.file("published/basic_val.tsv"), *data.valid);
  write_listops_tsv(directory_.file("published/basic_test.tsv"), *data.test);
  const TaskData read = open_task(config("listops", "published"));
  EXPECT_EQ(testing::content_of(*read.train), testing::content_of(*data.train));
  EXPECT_EQ(sizes_of(read), (Sizes{30, 4, 5}));
  DataConfig cut = config("listops", "published");
  cut.max_length = 600;
  const TaskData shorter = open_task(cut);
  EXPECT_EQ(shorter.max_length, 600);
  EXPECT_HAS(shorter.notes.at(0), "training sequences are longer than 600 and were cut");
}

TEST_F(Task, PathfinderGeneratedAndPublished) {
  DataConfig made = config("pathfinder", "made");
  made.generate_train = 6;
  made.generate_valid = made.generate_test = 2;
  EXPECT_EQ(sizes_of(open_task(made)), (Sizes{6, 2, 2}));
  EXPECT_EQ(sizes_of(open_task(config("pathfinder", "made"))), (Sizes{6, 2, 2}));

  std::string list;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "s" + std::to_string(i) + ".png";
    list += "imgs " + name + " " + std::to_string(i) + " " + std::to_string(i % 2) + "\n";
    write("published/imgs/" + name, png_bytes(2, 2, PNG_FORMAT_GRAY, {1, 2, 3, 4}));
  }
  write("published/metadata/1.npy", list);
  EXPECT_EQ(sizes_of(open_task(config("pathfinder", "published"))), (Sizes{16, 2, 2}));
}

}  // namespace
}  // namespace cosformer::data
