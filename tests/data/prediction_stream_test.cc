// Inputs as they come: from pipes line by line, packed files, files of lines in parts, tables in parts.
#include "data/readers/unlabelled/prediction_stream.h"

#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/dataset/joined.h"
#include "data/dataset_content.h"

namespace cosformer::data {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::text_of;
using cosformer::testing::write_bytes;
using Names = std::vector<std::string>;

DatasetInfo text_info() {
  DatasetInfo info;
  info.name = "text";
  info.vocabulary = kByteVocabulary;
  info.classes = {"bad", "good"};
  return info;
}

std::string packed(const std::string& text) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("text.gz");
  const gzFile file = ::gzopen(path.c_str(), "wb");
  ::gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  ::gzclose(file);
  return cosformer::testing::read_bytes(path);
}

std::string all_of(LineSource& source) {
  std::string all;
  for (std::string lines; !(lines = source.next()).empty();) {
    EXPECT_TRUE(lines.ends_with('\n') || lines.size() < 100) << "lines were torn";
    all += lines;
  }
  return all;
}

TEST(LineSource, GivesWholeLinesOfWhateverSize) {
  const TemporaryDirectory folder;
  const unsigned seed = 20240601;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::string text;
  for (int line = 0; line < 400; ++line) text += std::string(random() % (line % 50 == 0 ? 300000 : 200), 'x') + '\n';
  text += "the last";
  write_bytes(folder.file("text"), text);
  LineSource plain(folder.file("text"));
  EXPECT_EQ(all_of(plain), text);
  const std::string half = text.substr(0, text.size() / 2), rest = text.substr(text.size() / 2);
  write_bytes(folder.file("text.gz"), packed(half) + packed(rest));  // members end to end are one file
  LineSource unpacked(folder.file("text.gz"));
  EXPECT_EQ(all_of(unpacked), text);
  write_bytes(folder.file("cut.gz"), packed(text).substr(0, 2000));
  EXPECT_NE(message_of<UserError>([&] {
              LineSource cut(folder.file("cut.gz"));
              all_of(cut);
            }).find("damaged or cut short"),
            std::string::npos);
}

TEST(PredictionStream, AnswersNeedNotWaitForTheEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  DataConfig config;
  config.task = "text_files";
  const DatasetInfo info = text_info();
  const PredictionOptions options;
  PredictionStream stream(path, config, info, options);
  ASSERT_EQ(::write(ends[1], "one\n\ntw", 7), 7);
  const auto first = stream.next();  // returns, or the test hangs
  ASSERT_TRUE(first && first->dataset);
  EXPECT_EQ(first->names, (Names{"1"}));
  ASSERT_EQ(first->gaps.size(), 1U);
  EXPECT_EQ(first->gaps[0].name, "2");
  ASSERT_EQ(::write(ends[1], "o\n\n", 3), 3);
  const auto second = stream.next();
  ASSERT_TRUE(second && second->dataset);
  EXPECT_EQ(second->names, (Names{"3"}));
  EXPECT_EQ(text_of(second->dataset->get(0).first), "two");
  ASSERT_EQ(::write(ends[1], "\n", 1), 1);
  const auto blank = stream.next();
  ASSERT_TRUE(blank);
  EXPECT_FALSE(blank->dataset);
  EXPECT_EQ(blank->gaps.size(), 1U);
  ::close(ends[1]);
  EXPECT_FALSE(stream.next());
  ::close(ends[0]);
}

TEST(PredictionStream, TablesComeInParts) {
  const TemporaryDirectory folder;
  std::string rows = "text,label\n";
  for (int i = 0; i < 1100; ++i) rows += "text " + std::to_string(i) + (i % 2 == 0 ? ",good\n" : ",odd\n");
  write_bytes(folder.file("a.csv"), rows);
  DataConfig config;
  config.task = "text_files";
  const DatasetInfo info = text_info();
  const PredictionOptions options;
  PredictionStream stream(folder.file("a.csv"), config, info, options);
  EXPECT_EQ(stream.size(), 1100U);
  std::vector<DatasetPointer> parts;
  Names names;
  std::uint64_t unknown = 0;
  while (const auto input = stream.next()) {
    parts.push_back(input->dataset);
    names.insert(names.end(), input->names.begin(), input->names.end());
    unknown += input->unknown.rows;
  }
  EXPECT_GT(parts.size(), 2U);
  EXPECT_EQ(names.size(), 1100U);
  EXPECT_EQ(names.back(), "1101");
  EXPECT_EQ(unknown, 550U);
  const DatasetPointer all = joined(parts);
  EXPECT_EQ(all->size(), 1100U);
  EXPECT_EQ(text_of(all->get(1099).first), "text 1099");
  EXPECT_EQ(all->label(1098), 1);
  EXPECT_THROW(static_cast<void>(all->get(1100)), std::out_of_range);
}

TEST(PredictionStream, RefusesInputWithoutAnyQuestion) {
  const TemporaryDirectory folder;
  write_bytes(folder.file("a.txt"), "\n \n");
  DataConfig config;
  config.task = "text_files";
  const DatasetInfo info = text_info();
  const PredictionOptions options;
  PredictionStream stream(folder.file("a.txt"), config, info, options);
  EXPECT_TRUE(stream.next());
  EXPECT_NE(message_of<UserError>([&] { stream.next(); }).find("it holds no usable row"), std::string::npos);
}

}  // namespace
}  // namespace cosformer::data
