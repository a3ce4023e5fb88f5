#include "base/formats/base64.h"

#include <random>

#include <gtest/gtest.h>

namespace cosformer {
namespace {

TEST(Base64, IsAsPublished) {  // RFC 4648, 10
  const std::pair<const char*, const char*> pairs[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, ComesBackWhateverTheBytesAre) {
  const auto seed = static_cast<unsigned>(std::random_device{}());
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int trial = 0; trial < 500; ++trial) {
    std::string bytes(random() % 100, ' ');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
}

TEST(Base64, RefusesWhatItIsNot) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg==Zg==x", "Z===", "====", "Zm9\n", "Zg==Zg=="}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

}  // namespace
}  // namespace cosformer
