// What the reader gives back of what the writer wrote, and the exact bytes in between. Files that must be refused are
// in safetensors_malformed_test.cc.
#include "base/formats/safetensors.h"

#include <cstring>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "file_fixture.h"
#include "file_size_limit.h"

namespace cosformer::safetensors {
namespace {

using cosformer::testing::FileSizeLimit;
using cosformer::testing::message_of;
using cosformer::testing::read_bytes;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;
using ::testing::IsSubstring;

using Names = std::set<std::string>;

constexpr DType kAllDTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                                DType::kI32, DType::kI16, DType::kI8,  DType::kU64,  DType::kU32,
                                DType::kU16, DType::kU8,  DType::kBool};

std::string random_bytes(std::size_t size) {
  std::mt19937 generator(static_cast<unsigned>(size));
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(generator());
  return bytes;
}

std::string read_tensor(const Reader& reader, const std::string& name) {
  const Entry* entry = reader.find(name);
  if (entry == nullptr) throw std::runtime_error("no tensor " + name);
  std::string bytes(entry->size(), '\0');
  reader.read(*entry, bytes.data(), bytes.size());
  return bytes;
}

// A file written by hand: the length, the header padded with spaces to a multiple of 8, the wider dtype first although
// its name comes last, names in order within a dtype.
TEST(Safetensors, GoldenBytes) {
  const std::string header = R"({"__metadata__":{"by":"héllo \"x\"\n"},)"
                             R"("z.w":{"dtype":"I16","shape":[2,1],"data_offsets":[0,4]},)"
                             R"("a":{"dtype":"U8","shape":[3],"data_offsets":[4,7]},)"
                             R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[7,8]}})"
                             "      ";
  ASSERT_EQ(header.size(), 208U);
  const std::string golden =
      std::string("\xd0\0\0\0\0\0\0\0", 8) + header + std::string("\x01\x02\xff\x7f", 4) + "abc" + "\x01";

  const TemporaryDirectory directory;
  const std::string path = directory.file("golden.safetensors");
  const std::int16_t z[] = {0x0201, 0x7fff};
  const bool b = true;
  write(path, {{"b", DType::kBool, {}, &b, {}}, {"a", DType::kU8, {3}, "abc", {}}, {"z.w", DType::kI16, {2, 1}, z, {}}},
        {{"by", "héllo \"x\"\n"}});
  EXPECT_EQ(read_bytes(path), golden);

  write_bytes(path, golden);
  const Reader reader(path);
  ASSERT_EQ(reader.entries().size(), 3U);
  EXPECT_EQ(reader.entries()[0].name, "z.w");
  EXPECT_EQ(reader.entries()[0].dtype, DType::kI16);
  EXPECT_EQ(reader.entries()[0].shape, (Shape{2, 1}));
  EXPECT_EQ(reader.entries()[1].name, "a");
  EXPECT_EQ(reader.entries()[2].shape, Shape{});
  EXPECT_EQ(reader.metadata(), (Metadata{{"by", "héllo \"x\"\n"}}));
  EXPECT_EQ(read_tensor(reader, "z.w"), std::string("\x01\x02\xff\x7f", 4));
  EXPECT_EQ(read_tensor(reader, "a"), "abc");
  EXPECT_EQ(read_tensor(reader, "b"), "\x01");
}

TEST(Safetensors, EveryDTypeMakesTheRoundTrip) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("all.safetensors");
  std::vector<std::string> contents;
  for (const DType dtype : kAllDTypes) contents.push_back(random_bytes(15 * size_of(dtype)));
  std::vector<TensorToWrite> tensors;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    tensors.push_back({std::string(name_of(kAllDTypes[i])), kAllDTypes[i], {3, 5}, contents[i].data(), {}});
  }
  write(path, tensors);
  const Reader reader(path);
  ASSERT_EQ(reader.entries().size(), contents.size());
  EXPECT_TRUE(reader.metadata().empty());
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const Entry* entry = reader.find(name_of(kAllDTypes[i]));
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->dtype, kAllDTypes[i]);
    EXPECT_EQ(entry->shape, (Shape{3, 5}));
    EXPECT_EQ(read_tensor(reader, entry->name), contents[i]);
  }
  const std::uint64_t data_begin = read_bytes(path).size() - reader.entries().back().end;
  EXPECT_EQ(data_begin % 8, 0U);
  for (const Entry& entry : reader.entries()) EXPECT_EQ(entry.begin % size_of(entry.dtype), 0U) << entry.name;
}

TEST(Safetensors, TensorsWithoutElementsScalarsAndNoTensorsAtAll) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("edge.safetensors");
  const double scalar = 2.5;
  write(path, {{"empty", DType::kF32, {4, 0, 2}, nullptr, {}},
               {"first", DType::kF64, {0}, nullptr, {}},
               {"scalar", DType::kF64, {}, &scalar, {}}});
  const Reader reader(path);
  ASSERT_EQ(reader.entries().size(), 3U);
  EXPECT_EQ(reader.find("empty")->shape, (Shape{4, 0, 2}));
  EXPECT_EQ(reader.find("empty")->size(), 0U);
  reader.read(*reader.find("empty"), nullptr, 0);
  double back = 0;
  reader.read(*reader.find("scalar"), &back, sizeof back);
  EXPECT_EQ(back, scalar);
  EXPECT_EQ(reader.find("absent"), nullptr);

  write(path, {});
  EXPECT_EQ(read_bytes(path), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  EXPECT_TRUE(Reader(path).entries().empty());
}

TEST(Safetensors, UnicodeAndControlCharactersInNamesAndMetadata) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("unicode.safetensors");
  const std::string name = "слой.0/重み 🙂\t\"\\";
  const Metadata metadata{{"ключ", "värde 🙂"}, {"", std::string("zero\0byte", 9)}, {"format", "pt"}};
  write(path, {{name, DType::kU8, {1}, "x", {}}}, metadata);
  const Reader reader(path);
  EXPECT_EQ(reader.entries().at(0).name, name);
  EXPECT_EQ(reader.metadata(), metadata);
}

TEST(Safetensors, HeaderInAnyOrderWithSpacesIsReadInTheOrderOfTheData) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("order.safetensors");
  const std::string header =
      "{ \"b\" : {\"data_offsets\":[2,3], \"shape\":[1],\n\"dtype\":\"U8\"},"
      "\"e\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[2,2]},"
      "\"\\u0061\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}  ";
  write_bytes(path, std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "xyz");
  const Reader reader(path);
  ASSERT_EQ(reader.entries().size(), 3U);
  EXPECT_EQ(reader.entries()[0].name, "a");
  EXPECT_EQ(reader.entries()[1].name, "e");
  EXPECT_EQ(reader.entries()[2].name, "b");
  EXPECT_EQ(read_tensor(reader, "b"), "z");
}

TEST(Safetensors, SourcesAreStreamedInBlocksFromReaderToWriter) {
  const TemporaryDirectory directory;
  const std::string original = directory.file("original.safetensors"), copy = directory.file("copy.safetensors");
  const std::string large = random_bytes((std::size_t{5} << 20) / 2 * 4);  // 10 MiB: more than a block of either side
  write(original, {{"large", DType::kF32, {5, 1 << 19}, large.data(), {}}, {"small", DType::kU8, {2}, "ab", {}}});
  const Reader reader(original);
  EXPECT_EQ(read_tensor(reader, "large"), large);

  std::size_t largest_request = 0;
  std::vector<TensorToWrite> tensors;
  for (const Entry& entry : reader.entries()) {
    tensors.push_back(
        {entry.name, entry.dtype, entry.shape, nullptr, [&](std::uint64_t offset, void* destination, std::size_t size) {
           largest_request = std::max(largest_request, size);
           reader.read_part(entry, offset, destination, size);
         }});
  }
  write(copy, tensors);
  EXPECT_EQ(read_bytes(copy), read_bytes(original));
  EXPECT_LE(largest_request, std::size_t{1} << 20);
}

TEST(Safetensors, ReadingOutsideATensorIsRefused) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("small.safetensors");
  write(path, {{"w", DType::kF32, {2}, "12345678", {}}});
  const Reader reader(path);
  const Entry& entry = reader.entries().at(0);
  std::string bytes(16, '.');
  EXPECT_PRED_FORMAT2(IsSubstring, "into 4 bytes; expected 8, F32 of shape [2]",
                      message_of<UserError>([&] { reader.read(entry, bytes.data(), 4); }));
  EXPECT_PRED_FORMAT2(IsSubstring, "cannot read 8 bytes from byte 1 on of tensor 'w'",
                      message_of<UserError>([&] { reader.read_part(entry, 1, bytes.data(), 8); }));
  EXPECT_THROW(reader.read_part(entry, 9, bytes.data(), 0), UserError);
  Entry foreign = entry;  // as of another, larger file
  foreign.end = 16;
  EXPECT_THROW(reader.read(foreign, bytes.data(), 16), UserError);
  EXPECT_EQ(bytes, std::string(16, '.'));
}

TEST(Safetensors, AFileThatShrinksAfterOpeningIsAFailure) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("shrinking.safetensors");
  write(path, {{"w", DType::kF32, {2}, "12345678", {}}});
  const Reader reader(path);
  std::filesystem::resize_file(path, read_bytes(path).size() - 1);
  EXPECT_PRED_FORMAT2(IsSubstring, "it became shorter while it was being read",
                      message_of<Failure>([&] { read_tensor(reader, "w"); }));
}

TEST(SafetensorsWriter, ASourceThatThrowsLeavesTheOldFileAndNoTemporary) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("model.safetensors");
  write(path, {{"w", DType::kU8, {3}, "old", {}}});
  const std::string old_bytes = read_bytes(path);
  const Source failing = [](std::uint64_t offset, void* destination, std::size_t size) {
    if (offset > 0) throw std::runtime_error("midway");
    std::memset(destination, 0, size);
  };
  EXPECT_EQ(message_of<std::runtime_error>([&] {
              write(path, {{"w", DType::kU8, {3 << 20}, nullptr, failing}});
            }),
            "midway");
  EXPECT_EQ(read_bytes(path), old_bytes);
  EXPECT_EQ(directory.names(), Names{"model.safetensors"});
}

TEST(SafetensorsWriter, ADiskWithoutSpaceLeavesTheOldFileAndNoTemporary) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("model.safetensors");
  write(path, {{"w", DType::kU8, {3}, "old", {}}});
  const std::string old_bytes = read_bytes(path), large(100000, 'x');
  std::string message;
  {
    const FileSizeLimit limit(50000);
    message = message_of<Failure>([&] { write(path, {{"w", DType::kU8, {100000}, large.data(), {}}}); });
  }
  EXPECT_EQ(message, "cannot write '" + path + "': File too large");
  EXPECT_EQ(read_bytes(path), old_bytes);
  EXPECT_EQ(directory.names(), Names{"model.safetensors"});
}

TEST(SafetensorsWriter, RefusesWhatTheReaderWouldNotRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("model.safetensors");
  const auto refusal = [&](const std::vector<TensorToWrite>& tensors, const Metadata& metadata = {}) {
    return message_of<UserError>([&] { write(path, tensors, metadata); });
  };
  const auto named = [](const std::string& name) { return TensorToWrite{name, DType::kU8, {1}, "x", {}}; };
  const auto shaped = [](const Shape& shape) { return TensorToWrite{"w", DType::kF32, shape, "xxxx", {}}; };
  const Source source = [](std::uint64_t, void*, std::size_t) {};
  EXPECT_PRED_FORMAT2(IsSubstring, "a tensor has an empty name", refusal({named("")}));
  EXPECT_PRED_FORMAT2(IsSubstring, "'__metadata__' is kept for metadata", refusal({named("__metadata__")}));
  EXPECT_PRED_FORMAT2(IsSubstring, "two tensors are named 'a'", refusal({named("a"), named("b"), named("a")}));
  EXPECT_PRED_FORMAT2(IsSubstring, "a tensor's name is not valid UTF-8", refusal({named("\xff")}));
  EXPECT_PRED_FORMAT2(IsSubstring, "a metadata key is not valid UTF-8", refusal({}, {{"\xc3", ""}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "a metadata value is not valid UTF-8", refusal({}, {{"a", "\x80"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "impossible shape [2, -1]", refusal({shaped({2, -1})}));
  EXPECT_PRED_FORMAT2(IsSubstring, "impossible shape", refusal({shaped({std::int64_t{1} << 61})}));
  EXPECT_PRED_FORMAT2(IsSubstring, "at most 64", refusal({shaped(Shape(65, 1))}));
  EXPECT_PRED_FORMAT2(IsSubstring, "has neither data nor a source", refusal({{"w", DType::kU8, {1}, nullptr, {}}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "has both data and a source", refusal({{"w", DType::kU8, {1}, "x", source}}));
  const TensorToWrite quarter{"", DType::kU8, {std::int64_t{1} << 62}, nullptr, source};
  std::vector<TensorToWrite> too_many(5, quarter);
  for (std::size_t i = 0; i < too_many.size(); ++i) too_many[i].name = std::to_string(i);
  EXPECT_PRED_FORMAT2(IsSubstring, "more than 2^64 bytes", refusal(too_many));
  EXPECT_PRED_FORMAT2(IsSubstring, "above the format's limit", refusal({}, {{"m", std::string(100'000'000, 'm')}}));
  EXPECT_EQ(directory.names(), Names{});
}

}  // namespace
}  // namespace cosformer::safetensors
