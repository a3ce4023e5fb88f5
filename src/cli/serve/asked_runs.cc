#include "cli/serve/asked_runs.h"

#include <array>
#include <filesystem>

#include <fmt/core.h>

#include "base/error.h"
#include "cli/dataset_info.h"
#include "data/dataset/array_dataset.h"
#include "data/tokenizers/stream_decoder.h"
#include "data/tokenizers/tokenized_text.h"
#include "models/language/language_model_file.h"
#include "models/model_size.h"
#include "runs/device.h"
#include "runs/run_bundle.h"
#include "runs/run_tokenizer.h"
#include "runs/trained_models.h"
#include "train/inputs/batching.h"
#include "train/inputs/text_to_text_data.h"
#include "train/jobs/text_to_text_evaluation.h"
#include "train/jobs/trained_classifier.h"

namespace cosformer::cli {
namespace {

class AskedClassifier : public serve::TextClassifier {
 public:
  AskedClassifier(const std::string& run, const std::string& device) : model_(run, device) {
    constexpr std::array kTexts{"text", "retrieval", "text_files", "text_pairs"};
    const std::string& task = model_.config().data.task;
    if (std::find(kTexts.begin(), kTexts.end(), task) == kTexts.end()) {
      throw UserError(fmt::format(
          "'{}' classifies what the task {} gives it, and the server asks about texts; cosformer predict {} asks it",
          run, task, run));
    }
  }

  const std::vector<std::string>& classes() const override { return model_.input().classes; }
  bool pairs() const override { return model_.input().pairs; }

  std::vector<serve::ClassifiedText> classify(const std::vector<std::pair<std::string, std::string>>& texts) override {
    data::DatasetBuilder builder(data::ElementType::kU8, pairs());
    for (const auto& [first, second] : texts) builder.add_pair(first, second, data::kNoLabel);
    data::DatasetInfo info = dataset_info_of(model_.input(), model_.config().data.task);
    if (model_.has_tokenizer()) info.vocabulary = data::kByteVocabulary;
    const train::ReadData read = model_.read(builder.finish(info));
    std::vector<std::vector<float>> probabilities = model_.predict(read.dataset, {});
    std::vector<serve::ClassifiedText> answers;
    for (std::size_t at = 0; at < texts.size(); ++at) {
      answers.push_back({std::move(probabilities[at]), read.is_cut[at]});
    }
    return answers;
  }

  const models::InputConfig& input() const { return model_.input(); }
  std::optional<std::int64_t> most() const { return model_.most(); }

 private:
  train::TrainedClassifier model_;
};

class AskedTextToText : public serve::TextAnswerer {
 public:
  AskedTextToText(const std::string& run, const std::string& device)
      : config_(runs::read_run(run)),
        model_(runs::load_trained_encoder_decoder(run)),
        tokenizer_(runs::tokenizer_of_run(run, model_->config().tokenizer)),
        most_(train::text_input(model_->config()).max_length) {
    config_.train.device = device;
    device_ = runs::device_of(config_.train);
    model_->to(device_);
  }

  serve::WrittenAnswer answer(const std::string& source) override {
    data::DatasetBuilder builder(data::ElementType::kU8);
    builder.add(source, data::kNoLabel);
    data::DatasetInfo info;
    info.name = config_.data.task;
    info.vocabulary = data::kByteVocabulary;
    const data::DatasetPointer whole = data::tokenize_dataset(builder.finish(info), *tokenizer_, most_ + 1);
    const std::vector<std::int32_t> tokens =
        train::write_answers(*model_, data::shorten(whole, most_), *tokenizer_,
                             train::evaluation_options(config_.train, train::text_input(model_->config()), device_))
            .front();
    data::Utf8Filter filter;
    std::string text = filter.push(tokenizer_->decode(tokens));
    text += filter.finish();
    const std::int64_t length = whole->lengths(0).first;
    return {text, static_cast<std::size_t>(std::min(length, most_)), tokens.size(), length > most_};
  }

  const models::EncoderDecoder& model() const { return *model_; }
  const data::TokenizerPointer& tokenizer() const { return tokenizer_; }
  std::int64_t most() const { return most_; }

 private:
  runs::RunConfig config_;
  std::shared_ptr<models::EncoderDecoder> model_;
  data::TokenizerPointer tokenizer_;
  std::int64_t most_;
  at::Device device_ = at::kCPU;
};

std::unique_ptr<serve::ServedModel> named(const std::string& run, const std::string& kind) {
  auto served = std::make_unique<serve::ServedModel>();
  served->id = serve::name_of_run(run);
  served->created = serve::time_of_run(run);
  served->kind = kind;
  served->tokenizer_kind = "bytes";
  return served;
}

}  // namespace

std::unique_ptr<serve::ServedModel> open_run_to_serve(const std::string& run,
                                                      const serve::ServedModelOptions& options) {
  const std::string weights = runs::is_file(run) ? run : (std::filesystem::path(run) / "best.safetensors").string();
  if (!std::filesystem::exists(weights) || models::is_language_model(weights)) {
    return serve::open_served_model(run, options);
  }
  if (models::is_encoder_decoder(weights)) {
    auto served = named(run, "text_to_text");
    auto asked = std::make_unique<AskedTextToText>(run, options.device);
    served->attention = models::label_of(asked->model().config());
    served->parameters = asked->model().parameter_count();
    served->context_length = asked->most();
    served->vocabulary = asked->tokenizer()->vocabulary();
    served->tokenizer = asked->tokenizer();
    served->tokenizer_kind = asked->tokenizer()->kind_name();
    served->answerer = std::move(asked);
    return served;
  }
  auto served = named(run, "classifier");
  auto asked = std::make_unique<AskedClassifier>(run, options.device);
  const auto model = runs::load_trained_classifier(run);
  served->attention = models::label_of(model->config());
  served->parameters = model->parameter_count();
  served->context_length = asked->most();
  served->vocabulary = asked->input().vocabulary;
  served->classes = asked->classes();
  if (const data::TokenizerPointer tokenizer = runs::tokenizer_of_classifier(run)) {
    served->tokenizer = tokenizer;
    served->tokenizer_kind = tokenizer->kind_name();
  }
  served->classifier = std::move(asked);
  return served;
}

}  // namespace cosformer::cli
