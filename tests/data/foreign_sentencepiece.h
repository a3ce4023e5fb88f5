// SentencePiece models as others make them (normalisation, a space before the text), for the tests of their reading.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <dlfcn.h>

#include "data/tokenizers/sentencepiece_module.h"

namespace cosformer::testing {

inline std::string foreign_sentencepiece(const std::string& text, const data::SentencePieceModule::Settings& extra) {
#ifdef COSFORMER_SENTENCEPIECE_MODULE
  void* handle = ::dlopen(COSFORMER_SENTENCEPIECE_MODULE, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(::dlerror());
  using Get = const data::SentencePieceModule* (*)();
  const auto get = reinterpret_cast<Get>(::dlsym(handle, data::SentencePieceModule::kFunction));
  data::SentencePieceModule::Settings settings = {{"minloglevel", "2"}, {"num_threads", "1"}};
  settings.insert(settings.end(), extra.begin(), extra.end());
  std::size_t at = 0;
  const auto next = [&](std::string& sentence) {
    if (at >= text.size()) return false;
    const std::size_t end = std::min(text.find('\n', at), text.size());
    sentence = text.substr(at, end - at);
    at = end + 1;
    return true;
  };
  std::string model, problem;
  if (!get()->train(settings, next, model, problem)) throw std::runtime_error(problem);
  return model;
#else
  throw std::runtime_error("built without SentencePiece");
#endif
}

}  // namespace cosformer::testing
