#include "cli/runs/run_kinds.h"

#include <array>
#include <stdexcept>

#include <fmt/core.h>

#include "cli/eval/eval_classifier.h"
#include "cli/eval/eval_language.h"
#include "cli/eval/eval_recall.h"
#include "cli/eval/eval_text_to_text.h"
#include "cli/runs/predict_classifier.h"
#include "cli/runs/predict_text_to_text.h"
#include "cli/train/train_classifier.h"
#include "cli/train/train_language.h"
#include "cli/train/train_recall.h"
#include "cli/train/train_text_to_text.h"
#include "runs/trained_models.h"

namespace cosformer::cli {
namespace {

OpenedModel open_classifier(const std::string& run) {
  const auto model = runs::load_trained_classifier(run);
  return {model, models::label_of(model->config()), model->config().input.classes};
}

OpenedModel open_language_model(const std::string& run) {
  const auto model = runs::load_trained_language_model(run);
  return {model, models::label_of(model->config().model), {}};
}

OpenedModel open_recall_model(const std::string& run) {
  const auto model = runs::load_trained_recall_model(run);
  return {model, models::label_of(model->config().model), {}};
}

OpenedModel open_text_to_text(const std::string& run) {
  const auto model = runs::load_trained_encoder_decoder(run);
  return {model, models::label_of(model->config()), {}};
}

// Throws UserError that says what asks such a model.
void refuse_to_predict(const PredictOptions& options) {
  runs::load_trained_classifier(options.run);
}

std::string predicts(const std::string& run, const runs::RunConfig&) {
  return fmt::format("predict {} --input FILE", run);
}

std::string continues_texts(const std::string& run, const runs::RunConfig& config) {
  return config.data.task == "lm" ? fmt::format("generate {} --prompt TEXT", run)
                                  : fmt::format("eval {} --data FILE", run);
}

std::string evaluates(const std::string& run, const runs::RunConfig&) {
  return fmt::format("eval {}", run);
}

const UnreadOptions kOfReadData{{"--data"}, "tasks that read data"};
const UnreadOptions kOfLanguageModels{{"--carry", "--context"}, "language models"};
const UnreadOptions kOfTextToText{{"--write"}, "text-to-text runs"};

const std::array kKinds{
    RunKind{.kind = runs::Kind::kClassifier,
            .name = "classifier",
            .open = open_classifier,
            .train = train_classifier,
            .evaluate = eval_classifier,
            .unread_by_eval = {kOfLanguageModels, kOfTextToText},
            .predict = predict_classifier,
            .use = predicts},
    RunKind{.kind = runs::Kind::kLanguageModel,
            .name = "language model",
            .open = open_language_model,
            .train = train_language,
            .evaluate = eval_language,
            .unread_by_eval = {kOfTextToText},
            .predict = refuse_to_predict,
            .use = continues_texts},
    RunKind{.kind = runs::Kind::kTextToText,
            .name = "text-to-text model",
            .open = open_text_to_text,
            .train = train_text_to_text,
            .evaluate = eval_text_to_text,
            .unread_by_eval = {kOfLanguageModels},
            .predict = predict_text_to_text,
            .use = predicts},
    RunKind{.kind = runs::Kind::kRecall,
            .name = "recall model",
            .open = open_recall_model,
            .train = train_recall,
            .evaluate = eval_recall,
            .unread_by_eval = {kOfReadData, kOfLanguageModels, kOfTextToText},
            .predict = refuse_to_predict,
            .use = evaluates},
};

}  // namespace

const RunKind& kind_of_run(const runs::RunConfig& config) {
  for (const RunKind& kind : kKinds) {
    if (kind.kind == runs::kind_of(config)) return kind;
  }
  throw std::logic_error("a kind of run that the table of kinds does not have");
}

}  // namespace cosformer::cli
