// The tokens of some files as one file, made once and read place by place afterwards. Its name holds a hash of
// everything it was made from (the files' content, the tokenizer, the options), so that a cache is right or is not
// there.
//
// All numbers little-endian; parts begin at multiples of 8 bytes, with zero bytes in between:
//     header   0    8 bytes   "COSFTOKS"
//              8    u32       version of the format: 1
//             12    u32       type of a token: 2 u16, 3 i32
//             16   32 bytes   the hash of what it was made from
//             48    u32[3]    zero
//             60    u32       CRC-32 of the bytes 0 to 59
//     body    64              t tokens
//                   u64[s][5] segments: documents, tokens, bytes, words and lines up to the end of each
//                   u32[b]    CRC-32 of each 256 KB of the tokens (zero bytes behind them included)
//                             the description: a JSON object in UTF-8
//     footer   0    8 bytes   "COSFTOKE"
//              8    u64       t
//             16    u64       s
//             24    u64       bytes of the description
//             32    u32       CRC-32 of the body behind the tokens
//             36    u32[6]    zero
//             60    u32       CRC-32 of the footer's bytes 0 to 59
// It is written aside and renamed. Opening checks everything but the tokens, which are checked piece by piece before
// they are first read, or all at once when that is asked for. The segments are kept in memory, a twenty-fifth of the
// text at most; the tokens are not. Nothing is mapped: cut short by somebody else while it is open, the file gives an
// error where a mapped one would end the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/files/regular_file.h"
#include "base/formats/sha256.h"
#include "data/corpus/corpus.h"

namespace cosformer::data {

class TokenCacheWriter {
 public:
  TokenCacheWriter(std::string path, const Sha256::Digest& made_from, std::int32_t vocabulary);
  // Appends tokens and their segments, whose counts begin at 0.
  void add(std::span<const std::int32_t> ids, std::span<const TextCounts> ends);
  const TextCounts& counts() const { return counts_; }
  // The last call: the file is at its path afterwards.
  void finish(std::string description);

 private:
  void write_tokens(const void* data, std::size_t size);

  AtomicFile file_;
  bool narrow_;
  std::vector<TextCounts> ends_;
  std::vector<std::uint32_t> checksums_;
  TextCounts counts_;
  std::uint64_t token_bytes_ = 0;
  std::vector<std::uint16_t> narrowed_;
};

class TokenCache {
 public:
  // Throws UserError when the file is not an intact cache made from `made_from`. `verify`: the tokens too.
  TokenCache(const std::string& path, const Sha256::Digest& made_from, bool verify);

  const std::string& path() const { return file_.path(); }
  const std::string& description() const { return description_; }
  // What is there up to the end of each segment.
  std::span<const TextCounts> ends() const { return ends_; }
  TextCounts before(std::uint64_t segment) const { return segment == 0 ? TextCounts() : ends_[segment - 1]; }
  bool begins_document(std::uint64_t segment) const { return ends_[segment].documents != before(segment).documents; }
  std::uint64_t tokens() const { return tokens_; }

  // Tokens [begin, begin + destination.size()), which must exist. Throws Failure and removes the file when it is
  // damaged there, Failure too when it has become shorter.
  void read(std::uint64_t begin, std::span<std::int32_t> destination) const;
  // Whether every token is as it was written.
  bool intact() const;

 private:
  bool piece_is_intact(std::uint64_t piece) const;
  [[noreturn]] void refuse(const std::string& reason) const;

  RegularFile file_;
  bool narrow_ = false;
  std::uint64_t tokens_ = 0, token_bytes_ = 0;
  std::vector<TextCounts> ends_;
  std::vector<std::uint32_t> checksums_;
  std::string description_;
  mutable std::vector<std::atomic<bool>> checked_;  // pieces of the tokens
};

}  // namespace cosformer::data
