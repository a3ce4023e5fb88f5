// What is said about the classes of one's own files: how many there are of each, and what looks like a mistake.
#include "data/dataset/class_counts.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "data/task_fixture.h"

namespace cosformer::data {
namespace {

using ClassCounts = cosformer::testing::TaskFixture;

std::string notes_of(const TaskData& data) {
  std::string all;
  for (const std::string& note : data.notes) all += note + "\n";
  return all;
}

TEST_F(ClassCounts, CountsEachClassInEachPart) {
  std::string rows = "text\tlabel\n";
  for (int i = 0; i < 100; ++i) rows += "text " + std::to_string(i) + "\t" + (i % 4 == 0 ? "bad" : "good") + "\n";
  write("train.tsv", rows);
  write("test.tsv", "text\tlabel\na\tgood\nb\tgood\n");
  DataConfig own = config("text_files", "train.tsv");
  own.test_path = directory_.file("test.tsv");
  const std::vector<ClassCount> classes = class_counts(open_task(own));
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_EQ(classes[0].name, "bad");
  EXPECT_EQ(classes[0].train + classes[0].valid, 25U);
  EXPECT_EQ(classes[0].test, 0U);
  EXPECT_EQ(classes[1].train + classes[1].valid, 75U);
  EXPECT_EQ(classes[1].test, 2U);
  EXPECT_GT(classes[1].valid, 0U);
  EXPECT_HAS(describe_classes({{"bad", 20, 3, 2}, {"good", 1000, 0, 1}}), "'bad' 20 + 3 + 2, 'good' 1,000 + 0 + 1");
}

TEST(DescribeClasses, OfManyShowsTheLargest) {
  std::vector<ClassCount> many;
  for (std::size_t i = 0; i < 30; ++i) many.push_back({"c" + std::to_string(i), i, 0, 0});
  const std::string text = describe_classes(many);
  EXPECT_HAS(text, "'c29' 29 + 0 + 0, 'c28' 28");
  EXPECT_HAS(text, "and 10 more, down to 'c0' with 0");
  EXPECT_EQ(text.find("'c9'"), std::string::npos);
}

TEST_F(ClassCounts, NamesThatAreNearlyEqualAreDoubted) {
  std::string rows;
  const char* const labels[] = {"pos", "neg", "Pos", "pos ", "neg", "pos\xc2\xa0", "other"};
  for (int i = 0; i < 70; ++i) rows += "text " + std::to_string(i) + "\t" + labels[i % 7] + "\n";
  write("train.tsv", "text\tlabel\n" + rows);
  const std::string notes = notes_of(open_task(config("text_files", "train.tsv")));
  EXPECT_HAS(notes, "the classes 'Pos' (10 examples), 'pos' (10 examples), 'pos ' (10 examples) and 'pos\xc2\xa0'");
  EXPECT_HAS(notes, "differ in case or white space alone");
  EXPECT_EQ(notes.find("'neg'"), std::string::npos);
}

TEST_F(ClassCounts, AClassForEachRowIsDoubted) {
  std::string rows = "text\tlabel\n";
  for (int i = 0; i < 399; ++i) rows += "text\tid " + std::to_string(i) + "\n";
  write("train.tsv", rows);
  const std::string notes = notes_of(open_task(config("text_files", "train.tsv")));
  EXPECT_HAS(notes, "399 classes in 399 examples: hardly one occurs twice");
  EXPECT_HAS(notes, "data.label_column");
  EXPECT_EQ(notes.find("header"), std::string::npos);  // whose class would be as rare as all others
}

TEST_F(ClassCounts, AHeaderOfPairsReadAsAnExampleIsDoubted) {
  std::string rows = "English\tDeutsch\n";
  for (int i = 0; i < 30; ++i) rows += "a text of words\tein Text aus Wörtern\n";
  write("pairs.tsv", rows);
  DataConfig own = config("text_to_text", "pairs.tsv");
  own.source_column = "1";
  own.target_column = "2";
  EXPECT_HAS(notes_of(open_task(own)), "the first row is 'English' and 'Deutsch'; if it is the header");
  own.header = "yes";
  EXPECT_TRUE(open_task(own).notes.empty());
}

TEST_F(ClassCounts, AHeaderOfNumbersIsNamed) {
  write("train.csv", "label,x1,x2\nup,1,2\ndown,2,1\n");
  const std::string message = refusal(config("value_sequences", "train.csv"));
  EXPECT_HAS(message, "line 1: column 2 is 'x1'; expected a finite number; if this line is the table's header");
  EXPECT_HAS(message, "data.header=yes");
}

}  // namespace
}  // namespace cosformer::data
