// The user's own files as tasks: parts held out or given, classes and tokens numbered as in training.
#include <gtest/gtest.h>

#include "data/dataset_content.h"
#include "data/image_files.h"
#include "data/task_fixture.h"
#include "data/tasks/task.h"

namespace cosformer::data {
namespace {

using cosformer::testing::idx_bytes;
using cosformer::testing::png_bytes;
using cosformer::testing::Sizes;
using cosformer::testing::sizes_of;
using cosformer::testing::text_of;
using Names = std::vector<std::string>;
using OwnTask = cosformer::testing::TaskFixture;

TEST_F(OwnTask, TextFiles) {
  std::string rows = "words,kind\n";
  for (int i = 0; i < 50; ++i) rows += "text " + std::to_string(i) + "," + (i % 2 == 0 ? "b" : "a") + "\n";
  write("train.csv", rows);
  write("test.csv", "words,kind\nonly b,b\n");
  write("bad.csv", "words,kind\nfine,b\nother,c\n");
  DataConfig own = config("text_files", "train.csv");
  own.text_column = "words";
  own.label_column = "kind";
  EXPECT_EQ(sizes_of(open_task(own)), (Sizes{40, 5, 5}));  // 5 of 50, then 4.5 of 45
  own.test_path = directory_.file("test.csv");
  const TaskData data = open_task(own);
  EXPECT_EQ(sizes_of(data), (Sizes{45, 5, 1}));
  EXPECT_EQ(data.test->label(0), 1);  // as in training, though 'a' is not in the file
  own.test_path = directory_.file("bad.csv");
  EXPECT_HAS(refusal(own), "bad.csv' line 3: the label is 'c'; expected one of a, b");
  own.skip_bad_rows = true;
  const TaskData skipped = open_task(own);
  EXPECT_EQ(skipped.test->size(), 1U);
  EXPECT_EQ(skipped.report.rows_skipped, 1U);
  EXPECT_HAS(skipped.notes.at(0), "1 bad rows were left out");
  EXPECT_HAS(skipped.notes.at(0), "line 3");
  own.train_limit = 7;
  own.valid_limit = 2;
  EXPECT_EQ(sizes_of(open_task(own)), (Sizes{7, 2, 1}));
  own.reading = "values";
  EXPECT_HAS(refusal(own), "data.reading is values, but 'text_files' holds tokens");
}

TEST_F(OwnTask, HeaderReadAsAnExample) {
  std::string rows = "words,kind\n";
  for (int i = 0; i < 50; ++i) rows += "text " + std::to_string(i) + "," + (i % 2 == 0 ? "b" : "a") + "\n";
  write("train.csv", rows);
  DataConfig own = config("text_files", "train.csv");
  own.text_column = "1";
  own.label_column = "2";
  const TaskData data = open_task(own);
  EXPECT_EQ(data.train->info().classes, (Names{"a", "b", "kind"}));
  EXPECT_HAS(data.notes.at(0), "the only example of class 'kind'; if it is the header of the table");
  own.header = "yes";
  EXPECT_TRUE(open_task(own).notes.empty());
  own.header = "no";
  EXPECT_TRUE(open_task(own).notes.empty());
}

TEST_F(OwnTask, TextPairs) {
  std::string rows;
  for (int i = 0; i < 20; ++i)
    rows += R"({"text": "a", "second_text": "bb", "label": )" + std::to_string(i % 2) + "}\n";
  write("pairs.jsonl", rows);
  const TaskData data = open_task(config("text_pairs", "pairs.jsonl"));
  EXPECT_TRUE(data.train->info().pairs);
  EXPECT_EQ(text_of(data.test->get(0).second), "bb");
}

TEST_F(OwnTask, TextToText) {
  std::string rows = "source\ttarget\n";
  for (int i = 0; i < 20; ++i) rows += "ab\tba" + std::to_string(i) + "\n";
  write("pairs.tsv", rows);
  const TaskData data = open_task(config("text_to_text", "pairs.tsv"));
  EXPECT_EQ(sizes_of(data), (Sizes{16, 2, 2}));
  EXPECT_TRUE(data.train->info().pairs);
  EXPECT_EQ(text_of(data.train->get(0).first), "ab");
  EXPECT_EQ(text_of(data.train->get(0).second).substr(0, 2), "ba");
  EXPECT_EQ(data.description.find("classes"), std::string::npos);
  DataConfig other = config("text_to_text", "pairs.tsv");
  other.target_column = "answer";
  EXPECT_HAS(refusal(other), "there is no column 'answer'; it has 'source', 'target'");
  write("bad.tsv", "source\ttarget\na\tb\nc\t\n");
  EXPECT_HAS(refusal(config("text_to_text", "bad.tsv")), "bad.tsv' line 3: the text is empty");
}

TEST_F(OwnTask, IdxImages) {
  write("train-images-idx3-ubyte", idx_bytes({10, 2, 2}, std::string(40, 'x')));
  write("train-labels-idx1-ubyte", idx_bytes({10}, std::string("\0\1\2\0\1\2\0\1\2\0", 10)));
  EXPECT_EQ(sizes_of(open_task(config("idx_images"))), (Sizes{8, 1, 1}));
  write("t10k-images-idx3-ubyte", idx_bytes({1, 2, 2}, "abcd"));
  EXPECT_HAS(refusal(config("idx_images")), "data.test_labels_path");
  write("t10k-labels-idx1-ubyte", idx_bytes({1}, std::string(1, '\0')));
  const TaskData data = open_task(config("idx_images", ""));
  EXPECT_EQ(sizes_of(data), (Sizes{9, 1, 1}));
  EXPECT_EQ(data.test->info().classes, (Names{"0", "1", "2"}));
  write("t10k-images-idx3-ubyte", idx_bytes({1, 1, 2}, "ab"));
  EXPECT_HAS(refusal(config("idx_images")), "the images of the test part have 2 x 1 pixels; expected 2 x 2");
}

TEST_F(OwnTask, PngImages) {
  const std::string png = png_bytes(2, 2, PNG_FORMAT_GRAY, {1, 2, 3, 4});
  for (int i = 0; i < 6; ++i) {
    write("flat/cat/" + std::to_string(i) + ".png", png);
    write("parts/train/dog/" + std::to_string(i) + ".png", png);
    write("parts/train/cat/" + std::to_string(i) + ".png", png);
  }
  write("parts/test/dog/1.png", png);
  EXPECT_EQ(sizes_of(open_task(config("png_images", "flat"))), (Sizes{4, 1, 1}));
  const TaskData data = open_task(config("png_images", "parts"));
  EXPECT_EQ(sizes_of(data), (Sizes{11, 1, 1}));
  EXPECT_EQ(data.test->label(0), 1);
}

TEST_F(OwnTask, Sequences) {
  std::string rows;
  for (int i = 0; i < 20; ++i) rows += (i % 2 == 0 ? "up,1,2,3,5\n" : "down,4,3,2\n");
  write("train.csv", rows);
  write("test.csv", "down,6\n");
  DataConfig tokens = config("token_sequences", "train.csv");
  const TaskData data = open_task(tokens);
  EXPECT_EQ(data.train->info().vocabulary, 6 + kFirstToken);
  EXPECT_EQ(sizes_of(data), (Sizes{16, 2, 2}));
  tokens.test_path = directory_.file("test.csv");
  EXPECT_HAS(refusal(tokens), "column 2 is 6; expected a token from 0 to 5");
  tokens.vocabulary = 20;
  EXPECT_EQ(open_task(tokens).test->size(), 1U);
  DataConfig values = config("value_sequences", "train.csv");
  values.max_length = 2;
  EXPECT_EQ(open_task(values).max_length, 2);
  values.reading = "tokens";
  EXPECT_HAS(refusal(values), "data.reading is tokens, but 'value_sequences' holds real numbers");
  values.reading = "auto";
  values.test_fraction = 0;
  EXPECT_HAS(refusal(values), "data.test_fraction is 0, but the task 'value_sequences' has no such part");
}

}  // namespace
}  // namespace cosformer::data
