#include "data/corpus/corpus_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"

namespace cosformer::data {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are read as they lie in the file");
static_assert(std::is_standard_layout_v<TextCounts> && sizeof(TextCounts) == 40, "segments are read so");

constexpr std::string_view kMagic = "COSFTOKS", kEndMagic = "COSFTOKE";
constexpr std::uint32_t kVersion = 1, kNarrow = 2, kWide = 3;
constexpr std::uint64_t kPiece = std::uint64_t{256} << 10;
constexpr std::int32_t kNarrowVocabulary = 1 << 16;

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version, type;
  Sha256::Digest made_from;
  std::array<std::uint32_t, 3> zero;
  std::uint32_t checksum;
};

struct Footer {
  std::array<char, 8> magic;
  std::uint64_t tokens, segments, description_bytes;
  std::uint32_t index_checksum;
  std::array<std::uint32_t, 6> zero;
  std::uint32_t checksum;
};
static_assert(sizeof(Header) == 64 && sizeof(Footer) == 64);

std::uint32_t crc(const void* data, std::size_t size, std::uint32_t start = 0) {
  if (size == 0) return start;  // a null pointer would be a question to zlib
  return static_cast<std::uint32_t>(::crc32_z(start, static_cast<const Bytef*>(data), size));
}

std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

std::uint64_t pieces_of(std::uint64_t bytes) {
  return (bytes + kPiece - 1) / kPiece;
}

TextCounts sum(const TextCounts& a, const TextCounts& b) {
  return {a.documents + b.documents, a.tokens + b.tokens, a.bytes + b.bytes, a.words + b.words, a.lines + b.lines};
}

bool no_less(const TextCounts& a, const TextCounts& b) {
  return a.documents >= b.documents && a.tokens >= b.tokens && a.bytes >= b.bytes && a.words >= b.words &&
         a.lines >= b.lines;
}

}  // namespace

TokenCacheWriter::TokenCacheWriter(std::string path, const Sha256::Digest& made_from, std::int32_t vocabulary)
    : file_(std::move(path)), narrow_(vocabulary <= kNarrowVocabulary) {
  Header header{};
  std::memcpy(header.magic.data(), kMagic.data(), kMagic.size());
  header.version = kVersion;
  header.type = narrow_ ? kNarrow : kWide;
  header.made_from = made_from;
  header.checksum = crc(&header, sizeof(header) - 4);
  file_.write(&header, sizeof(header));
}

void TokenCacheWriter::write_tokens(const void* data, std::size_t size) {
  file_.write(data, size);
  const auto* next = static_cast<const char*>(data);
  while (size > 0) {
    const std::uint64_t filled = token_bytes_ % kPiece;
    if (filled == 0) checksums_.push_back(0);
    const std::size_t taken = static_cast<std::size_t>(std::min<std::uint64_t>(size, kPiece - filled));
    checksums_.back() = crc(next, taken, checksums_.back());
    token_bytes_ += taken;
    next += taken, size -= taken;
  }
}

void TokenCacheWriter::add(std::span<const std::int32_t> ids, std::span<const TextCounts> ends) {
  if (narrow_) {
    narrowed_.assign(ids.begin(), ids.end());
    write_tokens(narrowed_.data(), narrowed_.size() * sizeof(std::uint16_t));
  } else {
    write_tokens(ids.data(), ids.size_bytes());
  }
  for (const TextCounts& end : ends) ends_.push_back(sum(counts_, end));
  if (!ends.empty()) counts_ = ends_.back();
}

void TokenCacheWriter::finish(std::string description) {
  const std::array<char, 8> zeros{};
  write_tokens(zeros.data(), static_cast<std::size_t>(padded(token_bytes_) - token_bytes_));
  Footer footer{};
  std::memcpy(footer.magic.data(), kEndMagic.data(), kEndMagic.size());
  footer.tokens = counts_.tokens;
  footer.segments = ends_.size();
  footer.description_bytes = description.size();
  description.resize(static_cast<std::size_t>(padded(description.size())), '\0');
  if (checksums_.size() % 2 != 0) checksums_.push_back(0);
  const std::array<std::pair<const void*, std::size_t>, 3> parts = {{
      {ends_.data(), ends_.size() * sizeof(TextCounts)},
      {checksums_.data(), checksums_.size() * sizeof(std::uint32_t)},
      {description.data(), description.size()},
  }};
  for (const auto& [data, size] : parts) {
    if (size == 0) continue;
    footer.index_checksum = crc(data, size, footer.index_checksum);
    file_.write(data, size);
  }
  footer.checksum = crc(&footer, sizeof(footer) - 4);
  file_.write(&footer, sizeof(footer));
  file_.commit();
}

void TokenCache::refuse(const std::string& reason) const {
  throw UserError(fmt::format("cannot read '{}' as a cache of tokens: {}; remove it", path(), reason));
}

// Nothing is allocated before the sizes that the file announces are known to be its own.
TokenCache::TokenCache(const std::string& path, const Sha256::Digest& made_from, bool verify)
    : file_(path, "a cache of tokens") {
  Header header{};
  Footer footer{};
  const std::uint64_t size = file_.size();
  if (size < sizeof(header) + sizeof(footer)) refuse("it is too short");
  file_.read(0, &header, sizeof(header));
  file_.read(size - sizeof(footer), &footer, sizeof(footer));
  if (std::memcmp(header.magic.data(), kMagic.data(), kMagic.size()) != 0 ||
      header.checksum != crc(&header, sizeof(header) - 4)) {
    refuse("its header is damaged");
  }
  if (header.version != kVersion || (header.type != kNarrow && header.type != kWide)) refuse("it has another version");
  if (header.made_from != made_from) refuse("it was made from something else");
  if (std::memcmp(footer.magic.data(), kEndMagic.data(), kEndMagic.size()) != 0 ||
      footer.checksum != crc(&footer, sizeof(footer) - 4)) {
    refuse("its end is missing or damaged");
  }
  narrow_ = header.type == kNarrow;
  tokens_ = footer.tokens;
  // Nothing in a file can be counted higher than its bytes, which also keeps the sums from overflowing.
  if (std::max({footer.tokens, footer.segments, footer.description_bytes}) > size) refuse("its size is wrong");
  token_bytes_ = padded(tokens_ * (narrow_ ? 2 : 4));
  const std::uint64_t pieces = pieces_of(token_bytes_);
  const std::uint64_t segments_at = sizeof(header) + token_bytes_;
  const std::uint64_t checksums_at = segments_at + footer.segments * sizeof(TextCounts);
  const std::uint64_t description_at = checksums_at + padded(pieces * 4);
  const std::uint64_t footer_at = description_at + padded(footer.description_bytes);
  if (footer_at + sizeof(footer) != size) refuse("its size is wrong");
  ends_.resize(static_cast<std::size_t>(footer.segments));
  checksums_.resize(static_cast<std::size_t>(padded(pieces * 4) / 4));
  description_.resize(static_cast<std::size_t>(footer_at - description_at));
  const std::size_t ends_size = ends_.size() * sizeof(TextCounts), checksums_size = checksums_.size() * 4;
  file_.read(segments_at, ends_.data(), ends_size);
  file_.read(checksums_at, checksums_.data(), checksums_size);
  file_.read(description_at, description_.data(), description_.size());
  const std::uint32_t index = crc(description_.data(), description_.size(),
                                  crc(checksums_.data(), checksums_size, crc(ends_.data(), ends_size)));
  if (index != footer.index_checksum) refuse("its index is damaged");
  checksums_.resize(static_cast<std::size_t>(pieces));
  description_.resize(static_cast<std::size_t>(footer.description_bytes));
  TextCounts last;
  for (const TextCounts& end : ends_) {
    if (!no_less(end, last) || end.documents > last.documents + 1) refuse("its segments overlap");
    last = end;
  }
  if (last.tokens != tokens_) refuse("its segments do not cover its tokens");
  checked_ = std::vector<std::atomic<bool>>(static_cast<std::size_t>(pieces));
  if (verify && !intact()) refuse("its tokens are damaged (a checksum differs)");
}

bool TokenCache::piece_is_intact(std::uint64_t piece) const {
  std::atomic<bool>& checked = checked_[static_cast<std::size_t>(piece)];
  if (checked.load(std::memory_order_relaxed)) return true;
  const std::uint64_t begin = piece * kPiece;
  std::vector<char> bytes(static_cast<std::size_t>(std::min(kPiece, token_bytes_ - begin)));
  file_.read(sizeof(Header) + begin, bytes.data(), bytes.size());
  if (crc(bytes.data(), bytes.size()) != checksums_[static_cast<std::size_t>(piece)]) return false;
  checked.store(true, std::memory_order_relaxed);
  return true;
}

bool TokenCache::intact() const {
  for (std::uint64_t piece = 0; piece < checked_.size(); ++piece) {
    if (!piece_is_intact(piece)) return false;
  }
  return true;
}

void TokenCache::read(std::uint64_t begin, std::span<std::int32_t> destination) const {
  if (destination.empty()) return;
  const std::uint64_t size = narrow_ ? 2 : 4;
  const std::uint64_t last = (begin + destination.size() - 1) * size / kPiece;
  for (std::uint64_t piece = begin * size / kPiece; piece <= last; ++piece) {
    if (piece_is_intact(piece)) continue;
    ::unlink(path().c_str());
    throw Failure(fmt::format(
        "the cache of tokens '{}' is damaged (a checksum differs) and was removed; run again to make it anew", path()));
  }
  const std::uint64_t place = sizeof(Header) + begin * size;
  if (narrow_) {
    std::vector<std::uint16_t> ids(destination.size());
    file_.read(place, ids.data(), ids.size() * sizeof(std::uint16_t));
    std::copy(ids.begin(), ids.end(), destination.begin());
  } else {
    file_.read(place, destination.data(), destination.size_bytes());
  }
}

}  // namespace cosformer::data
