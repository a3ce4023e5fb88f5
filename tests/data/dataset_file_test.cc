// Data sets written to files and read back, and files that must be refused.
#include "data/dataset/dataset_file.h"

#include <cstring>
#include <iostream>
#include <random>

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/dataset_content.h"
#include "data/file_mutation.h"

namespace cosformer::data {
namespace {

using cosformer::testing::content_of;
using cosformer::testing::message_of;
using cosformer::testing::read_bytes;
using cosformer::testing::replace_bytes;
using cosformer::testing::TemporaryDirectory;
using ::testing::IsSubstring;

std::shared_ptr<const ArrayDataset> small_pairs() {
  DatasetBuilder builder(ElementType::kU8, true);
  builder.add_pair("first", "second text", 1);
  builder.add_pair(std::string("\0\xff", 2), "x", 0);
  builder.add_pair("unlabelled", "y", kNoLabel);
  DatasetInfo info;
  info.name = "pairs";
  info.vocabulary = kByteVocabulary;
  info.classes = {"no", "yes"};
  info.provenance = "{\"seed\":1}";
  return builder.finish(info);
}

TEST(DatasetFile, RoundTripKeepsEverything) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("pairs.data");
  const auto written = small_pairs();
  write_dataset(path, *written);
  const auto read = open_dataset(path);
  EXPECT_EQ(content_of(*read), content_of(*written));
  EXPECT_EQ(read->info().name, "pairs");
  EXPECT_EQ(read->info().classes, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(read->info().vocabulary, 258);
  EXPECT_EQ(read->info().max_length, 11);
  EXPECT_EQ(read->info().provenance, "{\"seed\":1}");
  EXPECT_TRUE(read->info().pairs);
  EXPECT_EQ(read->lengths(0).first, 5);
  EXPECT_EQ(read->lengths(0).second, 11);
  EXPECT_THROW(read->get(3), std::out_of_range);
  EXPECT_EQ(directory.names(), std::set<std::string>{"pairs.data"});
}

template <typename Element>
void expect_round_trip(ElementType type, Content content, const std::vector<Element>& elements) {
  const TemporaryDirectory directory;
  DatasetBuilder builder(type);
  builder.add(std::span<const Element>(elements), 0);
  builder.add(std::span<const Element>(elements).first(1), 0);
  DatasetInfo info;
  info.content = content;
  info.vocabulary = content == Content::kTokens ? 70002 : 0;
  info.value_scale = 0.5F;
  info.classes = {"only"};
  const auto written = builder.finish(info);
  write_dataset(directory.file("d"), *written);
  const auto read = open_dataset(directory.file("d"));
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(read->lengths(1).first, 1);
  const Example example = read->get(0);
  ASSERT_EQ(example.first.size, elements.size());
  EXPECT_EQ(std::memcmp(example.first.data, elements.data(), elements.size() * sizeof(Element)), 0);
  EXPECT_EQ(testing::values(example.first, read->info().value_scale)[1], static_cast<float>(elements[1]) * 0.5F);
  if (content == Content::kTokens) {
    EXPECT_EQ(testing::token_ids(example.first)[1], static_cast<std::int32_t>(elements[1]) + 2);
  } else {
    EXPECT_THROW(testing::token_ids(example.first), std::logic_error);
  }
}

TEST(DatasetFile, RoundTripOfWiderElements) {
  expect_round_trip<std::uint16_t>(ElementType::kU16, Content::kTokens, {1, 65535, 7});
  expect_round_trip<std::int32_t>(ElementType::kI32, Content::kTokens, {1, 69999, 7});
  expect_round_trip<float>(ElementType::kF32, Content::kValues, {1.5F, -2.25F, 1e30F});
}

class DatasetFileDamage : public ::testing::Test {
 protected:
  DatasetFileDamage() {
    write_dataset(path_, *small_pairs());
    good_ = read_bytes(path_);
  }

  std::string refusal(const std::string& bytes) {
    replace_bytes(path_, bytes);
    return message_of<UserError>([&] { open_dataset(path_); });
  }

  // Makes the checksums right again, so that what lies behind them is reached.
  static std::string resealed(std::string bytes) {
    const auto crc = [](const char* data, std::size_t size) {
      return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(data), size));
    };
    const std::uint32_t body = crc(bytes.data() + 64, bytes.size() - 64);
    std::memcpy(bytes.data() + 48, &body, 4);
    const std::uint32_t header = crc(bytes.data(), 52);
    std::memcpy(bytes.data() + 52, &header, 4);
    return bytes;
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.file("damaged.data");
  std::string good_;
};

TEST_F(DatasetFileDamage, EveryDamagedByteIsNoticed) {
  for (std::size_t i = 0; i < good_.size(); ++i) {
    std::string bytes = good_;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    EXPECT_NE(refusal(bytes), "(nothing was thrown)") << "byte " << i;
  }
}

TEST_F(DatasetFileDamage, EveryTruncationIsNoticed) {
  for (std::size_t size = 0; size < good_.size(); ++size) {
    EXPECT_NE(refusal(good_.substr(0, size)), "(nothing was thrown)") << size << " bytes";
  }
  EXPECT_PRED_FORMAT2(IsSubstring, "bytes; expected", refusal(good_ + "x"));
}

TEST_F(DatasetFileDamage, ReasonsAreNamed) {
  EXPECT_PRED_FORMAT2(IsSubstring, "does not begin with the header", refusal(""));
  std::string bytes = good_;
  bytes[8] = 9;
  EXPECT_PRED_FORMAT2(IsSubstring, "its header is damaged", refusal(bytes));
  EXPECT_PRED_FORMAT2(IsSubstring, "version 9 of the format; expected 1", refusal(resealed(bytes)));
  bytes = good_;
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  EXPECT_PRED_FORMAT2(IsSubstring, "the checksum differs", refusal(bytes));
  bytes = good_;
  bytes[64] = 'x';
  EXPECT_PRED_FORMAT2(IsSubstring, "not the expected JSON", refusal(resealed(bytes)));
  EXPECT_PRED_FORMAT2(IsSubstring, "no such file",
                      message_of<UserError>([&] { open_dataset(directory_.file("absent")); }));
  EXPECT_PRED_FORMAT2(IsSubstring, "it is a directory",
                      message_of<UserError>([&] { open_dataset(directory_.path()); }));
}

TEST_F(DatasetFileDamage, ResealedMutationsNeverCrash) {
  const std::uint32_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = good_;
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      bytes[8 + random() % (bytes.size() - 8)] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    replace_bytes(path_, resealed(bytes));
    try {
      const auto dataset = open_dataset(path_);
      for (const auto& example : content_of(*dataset)) accepted += example.label >= kNoLabel ? 1 : 0;
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(accepted, 0) << "no mutation was mild enough to be read: the loop tests too little";
}

}  // namespace
}  // namespace cosformer::data
