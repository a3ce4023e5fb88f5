#include "data/tokenizers/tokenizer_sentencepiece.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <dlfcn.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/utf8.h"
#include "base/formats/white_space.h"
#include "base/parallel.h"
#include "base/random.h"
#include "data/readers/file_content.h"
#include "data/tokenizers/sentencepiece_model.h"
#include "data/tokenizers/sentencepiece_module.h"

namespace cosformer::data {
namespace {

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581 stands for a space in pieces
constexpr std::size_t kLongestSentence = 4000;           // bytes of text that the trainer is given at once
constexpr const char* kModuleName = "libcosformer_sentencepiece.so";

// The module lies beside the library or program that holds this function, or in the folder lib beside that one's.
std::string module_path() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&sentencepiece_available), &here) == 0 || here.dli_fname == nullptr) {
    return "";
  }
  std::error_code error;
  std::filesystem::path file = std::filesystem::canonical(here.dli_fname, error);
  if (error) file = std::filesystem::canonical("/proc/self/exe", error);  // a program started through PATH
  const std::filesystem::path folder = file.parent_path();
  for (const std::filesystem::path& place : {folder, folder.parent_path() / "lib", folder.parent_path() / "lib64"}) {
    if (is_file((place / kModuleName).string())) return (place / kModuleName).string();
  }
  return "";
}

struct LoadedModule {
  const SentencePieceModule* functions = nullptr;
  std::string problem;
};

LoadedModule load_module() {
  const std::string path = module_path();
  if (path.empty()) {
    return {nullptr, fmt::format("this build has no SentencePiece ({} was not found beside the program); install "
                                 "libsentencepiece-dev and build again",
                                 kModuleName)};
  }
#ifdef COSFORMER_SANITIZED
  const int apart = 0;  // the sanitizers refuse RTLD_DEEPBIND, and are used without libtorch
#else
  const int apart = RTLD_DEEPBIND;
#endif
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | apart);
  if (handle == nullptr) return {nullptr, "cannot load SentencePiece: " + std::string(::dlerror())};
  using Get = const SentencePieceModule* (*)();
  const auto get = reinterpret_cast<Get>(::dlsym(handle, SentencePieceModule::kFunction));
  if (get == nullptr || get()->version != SentencePieceModule::kVersion) {
    return {nullptr, fmt::format("'{}' belongs to another version of this program; install both together", path)};
  }
  return {get(), ""};
}

const LoadedModule& loaded_module() {
  static const LoadedModule module = load_module();
  return module;
}

const SentencePieceModule& module() {
  if (loaded_module().functions == nullptr) throw UserError(loaded_module().problem);
  return *loaded_module().functions;
}

std::string with_spaces(std::string_view piece) {
  std::string text;
  while (!piece.empty()) {
    const std::size_t mark = std::min(piece.find(kSpaceMark), piece.size());
    text += piece.substr(0, mark);
    if (mark < piece.size()) text += ' ';
    piece.remove_prefix(std::min(mark + kSpaceMark.size(), piece.size()));
  }
  return text;
}

// "<0xE2>" to its byte; -1 for other texts.
int byte_of_piece(const std::string& text) {
  unsigned byte = 0;
  int used = 0;
  return text.size() == 6 && std::sscanf(text.c_str(), "<0x%2X>%n", &byte, &used) == 1 && used == 6
             ? static_cast<int>(byte)
             : -1;
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // Throws UserError with the reason alone.
  explicit SentencePieceTokenizer(std::string_view bytes) : file_(parse_sentencepiece_model(bytes)) {
    std::string problem;
    model_.reset(module().open(bytes, problem));
    if (!model_) throw UserError("SentencePiece refuses it: " + problem.substr(0, 200));
    if (module().pieces(model_.get()) != file_.pieces.size()) throw UserError("SentencePiece reads it otherwise");
    bytes_.fill(kNothing);
    bool newline_in_pieces = false;
    for (std::size_t i = 0; i < file_.pieces.size(); ++i) {
      const auto& piece = file_.pieces[i];
      const auto id = static_cast<std::int32_t>(i);
      const bool special = piece.type == PieceType::kControl || piece.type == PieceType::kUnknown;
      if (special || piece.type == PieceType::kUnused) specials_.push_back({piece.text, id});
      if (piece.type == PieceType::kControl && piece.text == file_.end_piece) end_ = id;
      if (piece.text == "<mask>" && piece.type != PieceType::kNormal) mask_ = id;
      if (piece.type == PieceType::kByte) {
        const int byte = byte_of_piece(piece.text);
        if (byte < 0) throw UserError(fmt::format("piece {} stands for no byte", i));
        bytes_[static_cast<std::size_t>(byte)] = id;
        texts_.emplace_back(1, static_cast<char>(byte));
      } else if (special) {
        texts_.emplace_back(piece.type == PieceType::kUnknown ? " \xe2\x81\x87 " : "");
      } else {
        texts_.push_back(with_spaces(piece.text));
        newline_in_pieces |= piece.text.find('\n') != std::string::npos;
      }
    }
    if (end_ == kNothing) end_ = add_special("<eod>");
    if (mask_ == kNothing) mask_ = add_special("<mask>");
    lossless_ = file_.byte_fallback && !file_.normalizes && !file_.add_dummy_prefix &&
                !file_.remove_extra_whitespaces && file_.escape_whitespaces && !newline_in_pieces &&
                std::find(bytes_.begin(), bytes_.end(), kNothing) == bytes_.end();
    set_content(std::string(bytes));
  }

  TokenizerKind kind() const override { return TokenizerKind::kSentencePiece; }
  std::int32_t vocabulary() const override { return static_cast<std::int32_t>(texts_.size()); }
  std::int32_t end_of_document() const override { return end_; }
  std::int32_t mask() const override { return mask_; }
  const std::vector<SpecialToken>& specials() const override { return specials_; }
  TextCuts cuts() const override { return lossless_ ? TextCuts::kAtNewlines : TextCuts::kAtDocuments; }

  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override {
    if (!lossless_) return encode_by_library(text, ids);
    // What the library would change goes byte by byte: newlines (a token of their own), zero bytes, the mark for
    // spaces, and what is no UTF-8.
    std::size_t plain = 0;
    while (plain < text.size()) {
      const Utf8Piece piece = next_utf8(text.substr(plain));
      const std::string_view here = text.substr(plain, piece.size);
      if (piece.state == Utf8State::kCharacter && here != "\n" && here[0] != '\0' && here != kSpaceMark) {
        plain += piece.size;
        continue;
      }
      encode_by_library(text.substr(0, plain), ids);
      for (const char c : here) ids.push_back(bytes_[static_cast<unsigned char>(c)]);
      text.remove_prefix(plain + piece.size);
      plain = 0;
    }
    encode_by_library(text, ids);
  }

  void append_text(std::int32_t id, std::int32_t previous, std::string& text) const override {
    require_id(id);
    std::string_view added = texts_[static_cast<std::size_t>(id)];
    const bool begins = previous == kNothing || previous == end_;
    if (begins && file_.add_dummy_prefix && added.starts_with(' ')) added.remove_prefix(1);
    text += added;
  }

  std::string token_name(std::int32_t id) const override {
    require_id(id);
    const auto index = static_cast<std::size_t>(id);
    if (index < file_.pieces.size()) return file_.pieces[index].text;
    return id == end_ ? "<eod>" : "<mask>";
  }

 private:
  std::int32_t add_special(const std::string& name) {
    const std::int32_t id = vocabulary();
    texts_.emplace_back();
    specials_.push_back({name, id});
    return id;
  }

  void encode_by_library(std::string_view text, std::vector<std::int32_t>& ids) const {
    if (text.empty()) return;
    static thread_local std::vector<int> found;
    found.clear();
    if (!module().encode(model_.get(), text, found)) throw Failure("SentencePiece failed to encode a text");
    ids.insert(ids.end(), found.begin(), found.end());
  }

  SentencePieceModelFile file_;
  std::unique_ptr<void, void (*)(void*)> model_{nullptr, module().close};
  std::vector<std::string> texts_;
  std::vector<SpecialToken> specials_;
  std::array<std::int32_t, 256> bytes_{};
  std::int32_t end_ = kNothing, mask_ = kNothing;
  bool lossless_ = false;
};

// Cuts texts into lines, long lines at spaces, and gives those that the library can learn from.
class TrainingSentences {
 public:
  TrainingSentences(const NextText& next, double share) : next_(next), share_(share) {}

  bool next(std::string& sentence) {
    for (;;) {
      if (at_ == text_.size()) {
        if (!next_(text_)) return false;
        at_ = 0;
        continue;
      }
      const std::string_view line = take_line();
      if (is_blank(line) || !is_utf8(line) || line.find('\0') != std::string_view::npos) continue;
      if (share_ < 1 && Random(0, RandomStream::kTokenizerText, number_++).unit() >= share_) continue;
      sentence = line;
      ++given_;
      return true;
    }
  }
  std::uint64_t given() const { return given_; }

 private:
  std::string_view take_line() {
    const std::string_view rest = std::string_view(text_).substr(at_);
    const std::size_t newline = std::min(rest.find('\n'), rest.size());
    if (newline <= kLongestSentence) {
      at_ += std::min(newline + 1, rest.size());
      return rest.substr(0, newline);
    }
    std::size_t end = rest.rfind(' ', kLongestSentence);
    if (end == std::string_view::npos || end == 0) {
      end = kLongestSentence;
      while (end > kLongestSentence - 4 && (static_cast<unsigned char>(rest[end]) & 0xc0) == 0x80) --end;
    }
    at_ += end;
    return rest.substr(0, end);
  }

  const NextText& next_;
  double share_;
  std::string text_;
  std::size_t at_ = 0;
  std::uint64_t number_ = 0, given_ = 0;
};

// What the library says, without its place in the library's source and advice about options that are its own.
std::string reason_of(const std::string& problem) {
  const std::size_t place = problem.rfind("] ");
  std::string reason = place == std::string::npos ? problem : problem.substr(place + 2);
  reason = reason.substr(0, std::min(reason.find(" Increase vocab_size"), std::size_t{300}));
  while (reason.ends_with('.')) reason.pop_back();
  return reason;
}

}  // namespace

bool sentencepiece_available() {
  return loaded_module().functions != nullptr;
}

TokenizerPointer parse_sentencepiece(std::string_view model, const std::string& name) {
  module();
  try {
    return std::make_shared<SentencePieceTokenizer>(model);
  } catch (const UserError& error) {
    throw UserError(fmt::format("cannot read '{}' as a SentencePiece model: {}; copy it again", name, error.what()));
  }
}

TokenizerPointer load_sentencepiece(const std::string& path) {
  return parse_sentencepiece(read_content(path), path);
}

TokenizerPointer train_sentencepiece(const NextText& next, const SentencePieceOptions& options) {
  if (options.model != "unigram" && options.model != "bpe") {
    throw UserError(fmt::format("there is no SentencePiece model '{}'; expected unigram or bpe", options.model));
  }
  // 256 bytes, <unk>, <eod>, <mask>, and something to learn.
  if (options.vocabulary < 264 || options.vocabulary > 1'000'000) {
    throw UserError(
        fmt::format("a SentencePiece vocabulary of {} is not possible; expected 264 (256 of them are bytes) to 1000000",
                    options.vocabulary));
  }
  if (!(options.share > 0)) throw UserError("the share of the text to learn from must be above 0");
  TrainingSentences sentences(next, options.share);
  const SentencePieceModule::Settings settings = {{"vocab_size", std::to_string(options.vocabulary)},
                                                  {"model_type", options.model},
                                                  {"num_threads", std::to_string(thread_count(options.threads))},
                                                  {"normalization_rule_name", "identity"},
                                                  {"add_dummy_prefix", "false"},
                                                  {"remove_extra_whitespaces", "false"},
                                                  {"byte_fallback", "true"},
                                                  {"unk_id", "0"},
                                                  {"eos_id", "1"},
                                                  {"bos_id", "-1"},
                                                  {"pad_id", "-1"},
                                                  {"eos_piece", "<eod>"},
                                                  {"control_symbols", "<mask>"},
                                                  {"max_sentence_length", std::to_string(2 * kLongestSentence)},
                                                  {"hard_vocab_limit", "true"},
                                                  {"minloglevel", "2"}};
  std::string model, problem;
  const bool done = module().train(
      settings, [&](std::string& sentence) { return sentences.next(sentence); }, model, problem);
  if (sentences.given() == 0) throw UserError("there is no text to learn a vocabulary from; give files with text");
  if (!done) {
    throw UserError(
        fmt::format("SentencePiece could not learn a vocabulary of {} pieces: {}; set another number of pieces with "
                    "{}, or give more text",
                    options.vocabulary, reason_of(problem), options.vocabulary_key));
  }
  return parse_sentencepiece(model, "the model just learned");
}

}  // namespace cosformer::data
