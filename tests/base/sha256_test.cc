#include "base/formats/sha256.h"

#include <gtest/gtest.h>

namespace cosformer {
namespace {

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(hexadecimal(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hexadecimal(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hexadecimal(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hexadecimal(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  const std::string text(1000, 'x');
  for (std::size_t first = 0; first <= 200; ++first) {
    Sha256 hash;
    hash.add(text.substr(0, first));
    hash.add(text.substr(first));
    ASSERT_EQ(hash.finish(), sha256(text)) << first;
  }
}

}  // namespace
}  // namespace cosformer
