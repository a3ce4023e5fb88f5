// Damaged files for the tests of readers.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "base/file_fixture.h"

namespace cosformer::testing {

// A file in place of another. Removing it first matters: some file systems flush to the disk when an existing file is
// truncated and written, which makes thousands of rewritings take minutes.
inline void replace_bytes(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  write_bytes(path, bytes);
}

// A number that a user may set, such as COSFORMER_FUZZ_SEED.
inline unsigned long from_environment(const char* name, unsigned long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

// `bytes` after a few random edits: bits, bytes that formats care about, cuts, copies of pieces, repetition.
inline std::string mutated(std::string bytes, std::mt19937& random) {
  static constexpr char kCharacters[] = "\0\xff\n\r\t,\"{}[]0-9.e+ \\\x80";
  static const std::string kTelling(kCharacters, sizeof(kCharacters) - 1);
  for (unsigned edits = 1 + random() % 5; edits > 0; --edits) {
    if (bytes.empty()) return bytes;
    const std::size_t at = random() % bytes.size();
    switch (random() % 7) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
      case 1: bytes[at] = static_cast<char>(random()); break;
      case 2: bytes[at] = kTelling[random() % kTelling.size()]; break;
      case 3: bytes.insert(at, 1, kTelling[random() % kTelling.size()]); break;
      case 4: bytes.erase(at, 1 + random() % 8); break;
      case 5: bytes.insert(random() % bytes.size(), bytes.substr(at, random() % 32)); break;
      default:
        if (random() % 4 == 0) bytes.resize(at);
        break;
    }
  }
  return bytes;
}

}  // namespace cosformer::testing
