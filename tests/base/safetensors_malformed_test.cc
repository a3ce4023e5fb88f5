// Files that the reader must refuse, each for the reason it has, and random damage that must never crash it.
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/formats/safetensors.h"
#include "file_fixture.h"

namespace cosformer::safetensors {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::read_bytes;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;
using ::testing::IsSubstring;

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

std::string file_of(const std::string& header, std::size_t data_size = 0) {
  return length_bytes(header.size()) + header + std::string(data_size, 'd');
}

// A header with the one tensor "w".
std::string tensor_w(const std::string& fields) {
  return "{\"w\":{" + fields + "}}";
}

class SafetensorsMalformed : public ::testing::Test {
 protected:
  std::string refusal_of_path(const std::string& path) const {
    return message_of<UserError>([&] { Reader reader(path); });
  }

  // Checks what all refusals share and gives the message.
  std::string refusal(const std::string& bytes) const {
    const std::string path = directory_.file("bad.safetensors");
    write_bytes(path, bytes);
    std::string message = refusal_of_path(path);
    EXPECT_PRED_FORMAT2(IsSubstring, "cannot read '" + path + "' as safetensors: ", message);
    EXPECT_PRED_FORMAT2(IsSubstring, "download or save it again", message);
    EXPECT_LT(message.size(), 1000U) << "a message must stay readable whatever the file holds";
    return message;
  }

  const TemporaryDirectory directory_;
};

#define EXPECT_REFUSED(bytes, part) EXPECT_PRED_FORMAT2(IsSubstring, part, refusal(bytes))

TEST_F(SafetensorsMalformed, NotAFile) {
  EXPECT_EQ(refusal_of_path(directory_.file("none")),
            "cannot read '" + directory_.file("none") + "': there is no such file; check the path");
  EXPECT_PRED_FORMAT2(IsSubstring, "no such file", refusal_of_path(""));
  EXPECT_PRED_FORMAT2(IsSubstring, "no such file", refusal_of_path("/dev/null/below"));
  EXPECT_PRED_FORMAT2(IsSubstring, "zero byte", refusal_of_path(std::string("a\0b", 3)));
  EXPECT_PRED_FORMAT2(IsSubstring, "it is a directory; give the path of a", refusal_of_path(directory_.path()));
  EXPECT_PRED_FORMAT2(IsSubstring, "it is not a regular file", refusal_of_path("/dev/null"));
  const std::string pipe = directory_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_PRED_FORMAT2(IsSubstring, "it is not a regular file", refusal_of_path(pipe));  // and does not wait
}

TEST_F(SafetensorsMalformed, HeaderLength) {
  EXPECT_REFUSED("", "it has 0 bytes; expected at least 8");
  EXPECT_REFUSED("1234567", "it has 7 bytes; expected at least 8");
  EXPECT_REFUSED(length_bytes(0), "does not begin with '{'");
  EXPECT_REFUSED(length_bytes(3) + "{}", "a header of 3 bytes, but only 2 follow: it was cut short");
  EXPECT_REFUSED(length_bytes(100'000'001) + "{}", "a header of 100000001 bytes; expected at most 100000000");
  EXPECT_REFUSED(length_bytes(~std::uint64_t{0}) + "{}", "a header of 18446744073709551615 bytes");
  EXPECT_REFUSED("PK\x03\x04 something else entirely", "bytes; expected at most 100000000");
}

TEST_F(SafetensorsMalformed, HeaderText) {
  const std::string not_json = "its header is not valid JSON in UTF-8";
  EXPECT_REFUSED(file_of("[]"), "does not begin with '{'");
  EXPECT_REFUSED(file_of(" {}"), "does not begin with '{'");
  EXPECT_REFUSED(file_of("\xef\xbb\xbf{}"), "does not begin with '{'");
  EXPECT_REFUSED(file_of("{"), not_json);
  EXPECT_REFUSED(file_of("{}x"), not_json);
  EXPECT_REFUSED(file_of("{}{}"), not_json);
  EXPECT_REFUSED(file_of("{\"w\":"), not_json);
  EXPECT_REFUSED(file_of("{w:1}"), not_json);
  EXPECT_REFUSED(file_of("{/* no comments */}"), not_json);
  EXPECT_REFUSED(file_of("{\"" + std::string(100000, 'w')), not_json);
  EXPECT_REFUSED(file_of(std::string("{}\0\0", 4)), "it holds a zero byte");
  EXPECT_REFUSED(file_of("{\"w\xff\":1}"), "ill-formed UTF-8 byte");
  EXPECT_REFUSED(file_of("{\"\xc0\xaf\":1}"), "ill-formed UTF-8 byte");      // an overlong form
  EXPECT_REFUSED(file_of("{\"\xed\xa0\x80\":1}"), "ill-formed UTF-8 byte");  // half of a surrogate pair
  EXPECT_REFUSED(file_of("{\"\\ud800\":1}"), not_json);
}

TEST_F(SafetensorsMalformed, DeepNestingEndsAtOnce) {
  const std::size_t depth = 5'000'000;
  EXPECT_REFUSED(file_of("{\"w\":" + std::string(depth, '[')), "tensor 'w': expected an object with dtype");
  std::string objects;
  for (std::size_t i = 0; i < 100'000; ++i) objects += "{\"w\":";
  EXPECT_REFUSED(file_of(objects), "tensor 'w': unknown field 'w'");
  EXPECT_REFUSED(file_of(tensor_w("\"shape\":" + std::string(depth, '['))), "must hold non-negative integers");
  EXPECT_REFUSED(file_of("{\"__metadata__\":{\"a\":" + std::string(depth, '[')), "the value of 'a' must be text");
}

TEST_F(SafetensorsMalformed, RepeatedNames) {
  const std::string fields = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_REFUSED(file_of("{\"w\":" + fields + ",\"w\":" + fields + "}", 1), "the name 'w' appears twice");
  EXPECT_REFUSED(file_of("{\"w\":" + fields + ",\"\\u0077\":" + fields + "}", 1), "the name 'w' appears twice");
  EXPECT_REFUSED(file_of(R"({"__metadata__":{},"__metadata__":{}})"), "the name '__metadata__' appears twice");
  EXPECT_REFUSED(file_of(R"({"__metadata__":{"a":"1","a":"1"}})"), "__metadata__: the key 'a' appears twice");
  EXPECT_REFUSED(file_of(tensor_w(R"("dtype":"U8","dtype":"U8")")), "tensor 'w': the field 'dtype' appears twice");
  EXPECT_REFUSED(file_of(tensor_w(R"("shape":[],"shape":[])")), "the field 'shape' appears twice");
  EXPECT_REFUSED(file_of("{\"\":" + fields + "}", 1), "empty name");
}

TEST_F(SafetensorsMalformed, WrongTypes) {
  EXPECT_REFUSED(file_of("{\"w\":1}"), "tensor 'w': expected an object with dtype, shape and data_offsets, found the");
  EXPECT_REFUSED(file_of("{\"w\":null}"), "found null");
  EXPECT_REFUSED(file_of("{\"w\":\"text\"}"), "found the text 'text'");
  EXPECT_REFUSED(file_of("{\"__metadata__\":[]}"),
                 "__metadata__: expected an object from text to text, found an array");
  EXPECT_REFUSED(file_of("{\"__metadata__\":{\"a\":1}}"), "the value of 'a' must be text, found the number 1");
  EXPECT_REFUSED(file_of("{\"__metadata__\":{\"a\":{}}}"), "the value of 'a' must be text, found an object");
  EXPECT_REFUSED(file_of(tensor_w("\"dtype\":32")), "'dtype' must be text such as \"F32\", found the number 32");
  EXPECT_REFUSED(file_of(tensor_w("\"dtype\":{}")), "'dtype' must be text such as \"F32\", found an object");
  EXPECT_REFUSED(file_of(tensor_w("\"dtype\":\"F31\"")), "unknown dtype 'F31'; expected one of F64 F32 F16 BF16 I64");
  EXPECT_REFUSED(file_of(tensor_w("\"dtype\":\"f32\"")), "unknown dtype 'f32'");
  EXPECT_REFUSED(file_of(tensor_w("\"shape\":3")), "'shape' must be an array of non-negative integers, found the");
  EXPECT_REFUSED(file_of(tensor_w("\"shape\":[-1]")), "'shape' must hold non-negative integers below 2^63, found -1");
  EXPECT_REFUSED(file_of(tensor_w("\"shape\":[1.0]")), "found the number 1.0");
  EXPECT_REFUSED(file_of(tensor_w("\"shape\":[true]")), "found true");
  EXPECT_REFUSED(file_of(tensor_w("\"shape\":[\"3\"]")), "found the text '3'");
  EXPECT_REFUSED(file_of(tensor_w("\"shape\":[9223372036854775808]")), "below 2^63, found 9223372036854775808");
  EXPECT_REFUSED(file_of(tensor_w("\"shape\":[99999999999999999999]")), "found the number 99999999999999999999");
  EXPECT_REFUSED(file_of(tensor_w("\"shape\":[1e999]")), "number overflow");
  EXPECT_REFUSED(file_of(tensor_w("\"data_offsets\":{}")), "'data_offsets' must be an array of 2 integers, found an");
  EXPECT_REFUSED(file_of(tensor_w("\"data_offsets\":[0,-8]")), "'data_offsets' must hold non-negative integers");
  EXPECT_REFUSED(file_of(tensor_w("\"data_offsets\":[0]")), "'data_offsets' has 1 numbers; expected 2");
  EXPECT_REFUSED(file_of(tensor_w("\"data_offsets\":[0,1,2]")), "'data_offsets' has more than the 2 numbers");
  EXPECT_REFUSED(file_of(tensor_w("\"device\":\"cpu\"")), "unknown field 'device'; expected dtype, shape and data_off");
  EXPECT_REFUSED(file_of(tensor_w("")), "tensor 'w': 'dtype' is missing");
  EXPECT_REFUSED(file_of(tensor_w("\"dtype\":\"U8\"")), "tensor 'w': 'shape' is missing");
  EXPECT_REFUSED(file_of(tensor_w("\"dtype\":\"U8\",\"shape\":[]")), "tensor 'w': 'data_offsets' is missing");
}

TEST_F(SafetensorsMalformed, Sizes) {
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return tensor_w("\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + offsets + "]");
  };
  EXPECT_REFUSED(file_of(one("F32", "3", "0,8"), 8), "hold 8 bytes, but F32 of shape [3] needs 12");
  EXPECT_REFUSED(file_of(one("F32", "0", "0,4"), 4), "hold 4 bytes, but F32 of shape [0] needs 0");
  EXPECT_REFUSED(file_of(one("F32", "", "0,0")), "hold 0 bytes, but F32 of shape [] needs 4");
  EXPECT_REFUSED(file_of(one("F32", "2", "8,0"), 8), "data_offsets [8, 0] end before they begin");
  EXPECT_REFUSED(file_of(one("F32", "2", "0,8"), 7), "reach past the 7 bytes of data that the file holds: it was cut");
  EXPECT_REFUSED(file_of(one("U8", "1", "18446744073709551614,18446744073709551615"), 1), "reach past the 1 bytes");
  const std::string too_large = "has more elements than memory can hold";
  EXPECT_REFUSED(file_of(one("U8", "4294967296,4294967296", "0,0")), too_large);  // the product wraps to 0
  EXPECT_REFUSED(file_of(one("F64", "2305843009213693952", "0,0")), too_large);   // the elements fit, the bytes wrap
  EXPECT_REFUSED(file_of(one("U8", "9223372036854775807,3,0", "0,0")), too_large);
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  EXPECT_REFUSED(file_of(one("U8", ones, "0,1"), 1), "'shape' has more than 64 dimensions");
}

TEST_F(SafetensorsMalformed, Cover) {
  const auto two = [](int a_begin, int a_end, int b_begin, int b_end) {
    const auto field = [](const std::string& name, int begin, int end) {
      return "\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(end - begin) + "],\"data_offsets\":[" +
             std::to_string(begin) + "," + std::to_string(end) + "]}";
    };
    return "{" + field("a", a_begin, a_end) + "," + field("b", b_begin, b_end) + "}";
  };
  EXPECT_REFUSED(file_of(two(0, 4, 3, 8), 8), "tensor 'b': its data begins at byte 3 and overlaps another tensor's");
  EXPECT_REFUSED(file_of(two(0, 8, 0, 8), 8), "tensor 'b': its data begins at byte 0 and overlaps another tensor's");
  EXPECT_REFUSED(file_of(two(0, 8, 2, 2), 8), "tensor 'b': its data begins at byte 2 and overlaps another tensor's");
  EXPECT_REFUSED(file_of(two(5, 8, 0, 4), 8), "tensor 'a': its data begins at byte 5 and leaves a hole; expected 4");
  EXPECT_REFUSED(file_of(two(1, 4, 4, 8), 8), "tensor 'a': its data begins at byte 1 and leaves a hole; expected 0");
  EXPECT_REFUSED(file_of(two(0, 4, 4, 8), 9), "1 bytes follow the last tensor; expected the file to end");
  EXPECT_REFUSED(file_of("{}", 3), "3 bytes follow the last tensor");
  EXPECT_REFUSED(file_of(two(0, 4, 4, 8), 5), "tensor 'b': data_offsets [4, 8] reach past the 5 bytes");
}

TEST_F(SafetensorsMalformed, NamesInMessagesAreCutAndMadeVisible) {
  std::string name(119, 'n');
  name += "ж";  // its second byte would be the 121st
  EXPECT_REFUSED(file_of("{\"" + name + std::string(5000, 'n') + "\":1}"), "tensor '" + std::string(119, 'n') + "…'");
  EXPECT_REFUSED(file_of("{\"a\\n\\u001b[31m\":1}"), "tensor 'a\\x0a\\x1b[31m'");
}

// Every prefix of a valid file is refused.
TEST_F(SafetensorsMalformed, EveryTruncation) {
  const std::string path = directory_.file("whole.safetensors");
  write(path, {{"a", DType::kF32, {2, 2}, "0123456789abcdef", {}}, {"b", DType::kU8, {3}, "xyz", {}}}, {{"k", "v"}});
  const std::string whole = read_bytes(path);
  ASSERT_EQ(Reader(path).entries().size(), 2U);
  for (std::size_t size = 0; size < whole.size(); ++size) refusal(whole.substr(0, size));
}

std::string damaged(std::string bytes, std::mt19937_64& generator) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(generator() % n); };
  const std::size_t changes = 1 + below(4);
  for (std::size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const std::size_t at = below(bytes.size());
    switch (below(6)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 1: bytes[at] = static_cast<char>(generator()); break;
      case 2: bytes.resize(at); break;
      case 3: bytes.erase(at, 1 + below(8)); break;
      case 4: bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(40))); break;
      default: {  // keep the JSON whole and change what it says: the faults behind the parser
        const std::size_t digit = bytes.find_first_of("0123456789", at);
        if (digit != std::string::npos) bytes[digit] = static_cast<char>('0' + below(10));
      }
    }
    if (below(2) == 0 && bytes.size() > 8) {  // a length that fits leads past the first check
      const std::size_t brace = bytes.rfind('}');
      if (brace != std::string::npos && brace > 8) bytes.replace(0, 8, length_bytes(brace + 1 - 8));
    }
  }
  return bytes;
}

// A damaged file is either refused as a UserError or, if it loads, keeps every promise of the reader. Run under the
// address and undefined-behaviour sanitizers in CI. COSFORMER_TEST_SEED repeats a run.
TEST_F(SafetensorsMalformed, RandomDamageIsRefusedOrHarmless) {
  const char* chosen = std::getenv("COSFORMER_TEST_SEED");
  const std::uint64_t seed = chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : std::random_device{}();
  std::cout << "COSFORMER_TEST_SEED=" << seed << "\n";
  std::mt19937_64 generator(seed);

  const std::string path = directory_.file("fuzz.safetensors");
  write(path,
        {{"layer.weight", DType::kF32, {2, 3}, "0123456789abcdef01234567", {}},
         {"layer.bias", DType::kBF16, {3}, "abcdef", {}},
         {"empty", DType::kF64, {0, 5}, nullptr, {}},
         {"flag", DType::kBool, {}, "\x01", {}}},
        {{"format", "pt"}, {"naïve", "☃"}});
  const std::string whole = read_bytes(path);

  int loaded = 0, refused = 0;
  for (int round = 0; round < 8000; ++round) {
    const std::string bytes = damaged(whole, generator);
    write_bytes(path, bytes);
    try {
      const Reader reader(path);
      std::uint64_t covered = 0;
      for (const Entry& entry : reader.entries()) {
        ASSERT_EQ(entry.begin, covered);
        ASSERT_EQ(byte_count(entry.dtype, entry.shape), entry.size());
        ASSERT_EQ(reader.find(entry.name), &entry);
        std::vector<char> content(entry.size());
        reader.read(entry, content.data(), content.size());
        covered = entry.end;
      }
      ASSERT_LE(covered + 8, bytes.size());
      ++loaded;
    } catch (const UserError& error) {
      ASSERT_PRED_FORMAT2(IsSubstring, path, std::string(error.what()));
      ++refused;
    }
  }
  EXPECT_GT(loaded, 100);  // else the damage is too coarse to reach what is behind the header
  EXPECT_GT(refused, 1000);
  std::cout << loaded << " loaded, " << refused << " refused\n";
}

}  // namespace
}  // namespace cosformer::safetensors
