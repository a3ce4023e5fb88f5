// What the tests of tokenizers and corpora share: random texts, corpora in a folder of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/file_fixture.h"
#include "data/corpus/corpus.h"
#include "data/tokenizers/tokenizer_sentencepiece.h"

namespace cosformer::testing {

inline std::string utf8_of(std::uint32_t character) {
  std::string text;
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xc0 | character >> 6);
    text += static_cast<char>(0x80 | (character & 0x3f));
  } else if (character < 0x10000) {
    text += static_cast<char>(0xe0 | character >> 12);
    text += static_cast<char>(0x80 | (character >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (character & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | character >> 18);
    text += static_cast<char>(0x80 | (character >> 12 & 0x3f));
    text += static_cast<char>(0x80 | (character >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (character & 0x3f));
  }
  return text;
}

// Characters of all lengths, with those that formats care about among them.
inline std::string random_unicode(std::size_t characters, std::mt19937& random) {
  static const std::vector<std::uint32_t> kTelling = {0,      '\n',   '\r',   '\t',   ' ',    '<',      0xa0,   0x2581,
                                                      0x2585, 0x2047, 0xfeff, 0xfffd, 0xfffe, 0x10ffff, 0xd7ff, 0xe000};
  std::string text;
  for (std::size_t i = 0; i < characters; ++i) {
    switch (random() % 6) {
      case 0: text += utf8_of(random() % 0x80); break;
      case 1: text += utf8_of(0x80 + random() % 0x780); break;
      case 2: text += utf8_of(0x800 + random() % (0xd800 - 0x800)); break;
      case 3: text += utf8_of(0x10000 + random() % 0x100000); break;
      case 4: text += utf8_of(kTelling[random() % kTelling.size()]); break;
      default: text += static_cast<char>('a' + random() % 26); break;
    }
  }
  return text;
}

inline std::string random_bytes(std::size_t size, std::mt19937& random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Lines of made-up words, some lines blank.
inline std::string random_prose(std::size_t lines, std::mt19937& random) {
  static const std::vector<std::string> kSyllables = {"ba", "ne", "ri", "to", "lum", "é", "sk", "ing", "the", "or"};
  std::string text;
  for (std::size_t line = 0; line < lines; ++line) {
    if (random() % 8 == 0)
      text += random() % 2 == 0 ? " " : "";
    else {
      for (unsigned words = 1 + random() % 12; words > 0; --words) {
        for (unsigned parts = 1 + random() % 3; parts > 0; --parts) text += kSyllables[random() % kSyllables.size()];
        if (words > 1) text += ' ';
      }
    }
    text += '\n';
  }
  return text;
}

inline data::TokenizerPointer trained_sentencepiece(const std::string& text, std::int32_t vocabulary,
                                                    const std::string& model = "unigram") {
  bool given = false;
  data::SentencePieceOptions options;
  options.vocabulary = vocabulary;
  options.model = model;
  options.threads = 1;
  return data::train_sentencepiece(
      [&](std::string& next) {
        next = text;
        return !std::exchange(given, true);
      },
      options);
}

inline std::vector<std::int32_t> all_tokens(const data::CorpusPart& part) {
  std::vector<std::int32_t> tokens(part.tokens());
  part.read(0, tokens);
  return tokens;
}

inline std::vector<std::uint64_t> all_starts(const data::CorpusPart& part) {
  std::vector<std::uint64_t> starts;
  part.document_starts(0, part.tokens(), starts);
  return starts;
}

}  // namespace cosformer::testing
