// What libcosformer_sentencepiece.so offers to tokenizer_sentencepiece.cc: the library's few functions that are needed.
//
// Why a module of its own: libsentencepiece exports the symbols of the protobuf that it carries, libtorch brings
// another version of the same, and in one program each would call the other's functions, which ends in a crash at the
// first model. A module that is loaded with RTLD_DEEPBIND keeps to its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cosformer::data {

struct SentencePieceModule {
  static constexpr std::uint32_t kVersion = 1;
  static constexpr const char* kFunction = "cosformer_sentencepiece_module";

  using Settings = std::vector<std::pair<std::string, std::string>>;
  using NextSentence = std::function<bool(std::string&)>;

  std::uint32_t version;
  // A model, or null and the problem. Nothing is thrown by any of these.
  void* (*open)(std::string_view serialized, std::string& problem);
  void (*close)(void* model);
  // Of an opened model. False when the library fails.
  bool (*encode)(const void* model, std::string_view text, std::vector<int>& ids);
  std::size_t (*pieces)(const void* model);
  // The serialized model, or false and the problem. What `next` throws is thrown on.
  bool (*train)(const Settings& settings, const NextSentence& next, std::string& serialized, std::string& problem);
};

}  // namespace cosformer::data
