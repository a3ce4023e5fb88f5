#include "data/tokenizers/tokenizer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/formats/sha256.h"
#include "data/readers/file_content.h"
#include "data/tokenizers/tokenizer_file.h"
#include "data/tokenizers/tokenizer_sentencepiece.h"
#include "data/tokenizers/tokenizer_words.h"

namespace cosformer::data {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr std::string_view kMagic = "COSFTOKN";
constexpr std::uint32_t kVersion = 1;

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version, kind;
  std::uint64_t content_bytes;
  Sha256::Digest hash;
  std::uint64_t zero;
};
static_assert(sizeof(Header) == 64);

Header header_of(TokenizerKind kind, std::string_view content) {
  Header header{};
  std::memcpy(header.magic.data(), kMagic.data(), kMagic.size());
  header.version = kVersion;
  header.kind = static_cast<std::uint32_t>(kind);
  header.content_bytes = content.size();
  Sha256 hash;
  hash.add(&header.version, 16);
  hash.add(content);
  header.hash = hash.finish();
  return header;
}

[[noreturn]] void refuse(const std::string& name, const std::string& reason) {
  throw UserError(fmt::format("cannot read '{}' as a tokenizer: {}; make or copy it again", name, reason));
}

class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr std::int32_t kEnd = 256, kMask = 257;

  ByteTokenizer() { set_content(""); }

  TokenizerKind kind() const override { return TokenizerKind::kBytes; }
  std::int32_t vocabulary() const override { return 258; }
  std::int32_t end_of_document() const override { return kEnd; }
  std::int32_t mask() const override { return kMask; }
  const std::vector<SpecialToken>& specials() const override { return specials_; }
  TextCuts cuts() const override { return TextCuts::kAnywhere; }

  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override {
    const std::size_t before = ids.size();
    ids.resize(before + text.size());
    for (std::size_t i = 0; i < text.size(); ++i) ids[before + i] = static_cast<unsigned char>(text[i]);
  }

  void append_text(std::int32_t id, std::int32_t, std::string& text) const override {
    require_id(id);
    if (id < kEnd) text += static_cast<char>(id);
  }

  std::string token_name(std::int32_t id) const override {
    require_id(id);
    if (id >= kEnd) return specials_[static_cast<std::size_t>(id - kEnd)].name;
    if (id > ' ' && id < 127) return std::string(1, static_cast<char>(id));
    std::array<char, 8> name{};
    std::snprintf(name.data(), name.size(), "<0x%02x>", static_cast<unsigned>(id));
    return name.data();
  }

 private:
  const std::vector<SpecialToken> specials_ = {{"<eod>", kEnd}, {"<mask>", kMask}};
};

}  // namespace

std::string Tokenizer::kind_name() const {
  switch (kind()) {
    case TokenizerKind::kBytes: return "bytes";
    case TokenizerKind::kSentencePiece: return "sentencepiece";
    case TokenizerKind::kWords: return "words";
  }
  throw std::logic_error("a kind of tokenizer without a name");
}

void Tokenizer::require_id(std::int32_t id) const {
  if (id < 0 || id >= vocabulary()) {
    throw std::out_of_range(fmt::format("token {} is not in the vocabulary of {}", id, vocabulary()));
  }
}

bool Tokenizer::is_special(std::int32_t id) const {
  return std::any_of(specials().begin(), specials().end(), [=](const SpecialToken& s) { return s.id == id; });
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  encode(text, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  std::int32_t previous = kNothing;
  for (const std::int32_t id : ids) {
    append_text(id, previous, text);
    previous = id;
  }
  return text;
}

void Tokenizer::set_content(std::string content) {
  content_ = std::move(content);
  hash_ = hexadecimal(header_of(kind(), content_).hash);
}

std::string Tokenizer::serialized() const {
  const Header header = header_of(kind(), content_);
  std::string bytes(sizeof(header), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes + content_;
}

TokenizerPointer byte_tokenizer() {
  static const TokenizerPointer tokenizer = std::make_shared<ByteTokenizer>();
  return tokenizer;
}

TokenizerPointer parse_tokenizer(std::string_view bytes, const std::string& name) {
  Header header{};
  if (bytes.size() < sizeof(header) || !bytes.starts_with(kMagic)) {
    refuse(name, "it does not begin with the header of one");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  const std::string_view content = bytes.substr(sizeof(header));
  if (header.version != kVersion) {
    refuse(name, fmt::format("it has version {} of the format; expected {}", header.version, kVersion));
  }
  if (header.content_bytes != content.size()) {
    refuse(name, fmt::format("it has {} bytes of content; its header says {}", content.size(), header.content_bytes));
  }
  const auto kind = static_cast<TokenizerKind>(header.kind);
  if (header.zero != 0 || header_of(kind, content).hash != header.hash)
    refuse(name, "it is damaged (the hash differs)");
  TokenizerPointer tokenizer;
  switch (kind) {
    case TokenizerKind::kBytes: tokenizer = byte_tokenizer(); break;
    case TokenizerKind::kSentencePiece: tokenizer = parse_sentencepiece(content, name); break;
    case TokenizerKind::kWords: tokenizer = parse_word_vocabulary(content, name); break;
    default: refuse(name, fmt::format("its kind {} is unknown", header.kind));
  }
  // A word list that was tidied while it was read (counts, a missing <unk>) would be another tokenizer than it says.
  if (tokenizer->hash() != hexadecimal(header.hash)) refuse(name, "its content is not in the form that it is saved in");
  return tokenizer;
}

TokenizerPointer open_tokenizer(const std::string& what) {
  if (what == "bytes") return byte_tokenizer();
  if (what.ends_with(".model")) return load_sentencepiece(what);
  if (!is_file(what)) {
    throw UserError(
        fmt::format("there is no tokenizer '{}'; expected bytes, or the path of a saved tokenizer, of a SentencePiece "
                    ".model or of a word list (.txt, .vocab)",
                    what));
  }
  const std::string content = read_content(what);
  if (content.starts_with(kMagic)) return parse_tokenizer(content, what);
  if (what.ends_with(".txt") || what.ends_with(".vocab")) return parse_word_vocabulary(content, what);
  throw UserError(
      fmt::format("cannot tell what kind of tokenizer '{}' is; expected a saved tokenizer, a SentencePiece .model or a "
                  "word list (.txt, .vocab)",
                  what));
}

void save_tokenizer(const std::string& path, const Tokenizer& tokenizer) {
  const std::string bytes = tokenizer.serialized();
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

void require_tokenizer(const Tokenizer& tokenizer, const std::string& expected, const std::string& owner) {
  if (tokenizer.hash() == expected) return;
  throw UserError(fmt::format(
      "{} was made with another tokenizer than this one ({} of {} tokens, hash {}; expected hash {}); use the "
      "tokenizer that is stored with it",
      owner, tokenizer.kind_name(), tokenizer.vocabulary(), tokenizer.hash().substr(0, 12), expected.substr(0, 12)));
}

}  // namespace cosformer::data
