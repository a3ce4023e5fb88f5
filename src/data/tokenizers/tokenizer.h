// Text as token ids and back: bytes, SentencePiece or words, behind one interface.
//
// A tokenizer is immutable and may be used from several threads. It is saved as one file, which a run keeps, and has a
// hash of its content: a model remembers it and runs with no other tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cosformer::data {

// The values are part of the file format.
enum class TokenizerKind : std::uint32_t { kBytes = 1, kSentencePiece = 2, kWords = 3 };

// Where a text may be cut so that its pieces, encoded by themselves, give the tokens of the whole.
enum class TextCuts {
  kAnywhere,     // between any two bytes
  kAtNewlines,   // before and behind a newline
  kAtDocuments,  // nowhere
};

struct SpecialToken {
  std::string name;  // "<eod>", "<mask>", ...
  std::int32_t id = 0;
};

class Tokenizer {
 public:
  static constexpr std::int32_t kNothing = -1;  // before the first token

  virtual ~Tokenizer() = default;

  virtual TokenizerKind kind() const = 0;
  // All ids, those of special tokens too, are from 0 to vocabulary() - 1.
  virtual std::int32_t vocabulary() const = 0;
  // Stands behind every document, and before a text as what the first token is predicted from.
  virtual std::int32_t end_of_document() const = 0;
  // What a masked language model sees in place of a token; encode() never gives it.
  virtual std::int32_t mask() const = 0;
  // Tokens that stand for no text of their own (but <unk>, which stands for any word). In the order of their ids.
  virtual const std::vector<SpecialToken>& specials() const = 0;
  virtual TextCuts cuts() const = 0;

  // Appends the ids of `text`, which may be any bytes. Special tokens are not recognised in it, but for
  // the published <unk> and <eos> of words and what a SentencePiece model from elsewhere defines.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  // Appends the bytes that `id` adds to a text whose token before was `previous` (kNothing: none). Throws
  // std::out_of_range for an id that is not in the vocabulary.
  virtual void append_text(std::int32_t id, std::int32_t previous, std::string& text) const = 0;
  // A token for people: "a", "▁the", "<0xe2>", "<eod>".
  virtual std::string token_name(std::int32_t id) const = 0;

  // "bytes", "sentencepiece", "words".
  std::string kind_name() const;
  bool is_special(std::int32_t id) const;
  std::vector<std::int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> ids) const;
  // 64 hexadecimal digits: equal when, and only when, kind and content are.
  const std::string& hash() const { return hash_; }
  // The tokenizer as a file (tokenizer_file.h).
  std::string serialized() const;

 protected:
  // What besides the kind makes this tokenizer; every constructor ends with it.
  void set_content(std::string content);
  // Throws std::out_of_range.
  void require_id(std::int32_t id) const;

 private:
  std::string content_, hash_;
};

using TokenizerPointer = std::shared_ptr<const Tokenizer>;

// Ids 0 to 255 are the bytes, 256 is <eod>, 257 <mask>. Needs nothing and loses nothing.
TokenizerPointer byte_tokenizer();

}  // namespace cosformer::data
