// libcosformer_sentencepiece.so. Nothing else may be linked into it.
#include "data/tokenizers/sentencepiece_module.h"

#include <exception>
#include <memory>
#include <unordered_map>

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

namespace cosformer::data {
namespace {

using sentencepiece::SentencePieceProcessor;

absl::string_view view(std::string_view text) {
  return {text.data(), text.size()};
}

void* open_model(std::string_view serialized, std::string& problem) {
  try {
    auto processor = std::make_unique<SentencePieceProcessor>();
    const auto status = processor->LoadFromSerializedProto(view(serialized));
    if (status.ok()) return processor.release();
    problem = status.ToString();
  } catch (const std::exception& error) {
    problem = error.what();
  } catch (...) {
    problem = "the library failed";
  }
  return nullptr;
}

void close_model(void* model) {
  delete static_cast<SentencePieceProcessor*>(model);
}

bool encode(const void* model, std::string_view text, std::vector<int>& ids) {
  try {
    return static_cast<const SentencePieceProcessor*>(model)->Encode(view(text), &ids).ok();
  } catch (...) {
    return false;
  }
}

std::size_t pieces(const void* model) {
  return static_cast<std::size_t>(static_cast<const SentencePieceProcessor*>(model)->GetPieceSize());
}

class Sentences final : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const SentencePieceModule::NextSentence& next) : next_(next) { Next(); }
  bool done() const override { return done_; }
  void Next() override {
    try {
      done_ = done_ || !next_(sentence_);
    } catch (...) {  // not through the library's frames
      failure_ = std::current_exception();
      done_ = true;
    }
  }
  const std::string& value() const override { return sentence_; }
  sentencepiece::util::Status status() const override { return {}; }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  const SentencePieceModule::NextSentence& next_;
  std::string sentence_;
  bool done_ = false;
  std::exception_ptr failure_;
};

bool train(const SentencePieceModule::Settings& settings, const SentencePieceModule::NextSentence& next,
           std::string& serialized, std::string& problem) {
  const std::unordered_map<std::string, std::string> arguments(settings.begin(), settings.end());
  Sentences sentences(next);
  try {
    const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &sentences, &serialized);
    problem = status.ok() ? "" : status.ToString();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  sentences.rethrow();
  return problem.empty();
}

constexpr SentencePieceModule kModule = {
    SentencePieceModule::kVersion, open_model, close_model, encode, pieces, train,
};

}  // namespace
}  // namespace cosformer::data

extern "C" __attribute__((visibility("default"))) const cosformer::data::SentencePieceModule*
cosformer_sentencepiece_module() {
  return &cosformer::data::kModule;
}
