#include "cli/runs/predict_text_to_text.h"

#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/table.h"
#include "cli/runs/answered_inputs.h"
#include "cli/terminal/one_line.h"
#include "cli/terminal/progress_line.h"
#include "data/tokenizers/stream_decoder.h"
#include "data/tokenizers/tokenized_text.h"
#include "runs/device.h"
#include "runs/run_tokenizer.h"
#include "runs/trained_models.h"
#include "train/initial_weights.h"
#include "train/inputs/batching.h"
#include "train/inputs/language_data.h"
#include "train/inputs/text_to_text_batch.h"
#include "train/inputs/text_to_text_data.h"
#include "train/jobs/text_to_text_evaluation.h"

namespace cosformer::cli {
namespace {

// `text`: what was asked, or null where it is not to be shown; `cut_at`: how many tokens of it were read, where that is
// not all.
void print_answer(const PredictOptions& o, const std::string& name, const std::string* text,
                  std::optional<std::int64_t> cut_at, const std::string& answer) {
  if (o.output == "jsonl") {
    nlohmann::ordered_json json{{"input", name}};
    if (text != nullptr) json["text"] = *text;
    if (cut_at) json["cut_at"] = *cut_at;
    json["output"] = answer;
    std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  const std::string before = text != nullptr ? on_one_line(*text) + '\t' : "";
  if (o.output == "tsv") std::printf("%s\t", name.c_str());
  std::printf("%s%s\n", before.c_str(), on_one_line(answer).c_str());
}

class Answering {
 public:
  explicit Answering(const PredictOptions& o)
      : o_(o),
        config_(runs::read_run(o.run)),
        model_(runs::load_trained_encoder_decoder(o.run)),
        tokenizer_(runs::tokenizer_of_run(o.run, model_->config().tokenizer)),
        most_(train::text_input(model_->config()).max_length) {
    config_.train.device = o.device;
    device_ = runs::device_of(config_.train);
    model_->to(device_);
  }

  const runs::RunConfig& config() const { return config_; }

  void answer(const data::PredictionInput& input, const std::function<void(std::size_t)>& progress) {
    std::vector<std::vector<std::int32_t>> answers;
    data::DatasetPointer whole;
    if (input.dataset) {
      whole = data::tokenize_dataset(input.dataset, *tokenizer_, most_ + 1);  // shows what is cut
      const models::InputConfig trained = train::text_input(model_->config());
      answers = train::write_answers(*model_, data::shorten(whole, most_), *tokenizer_,
                                     train::evaluation_options(config_.train, trained, device_), progress);
    }
    AnsweredInputs::in_order(
        input,
        [&](std::size_t at) {
          const data::SequenceView source = input.dataset->get(at).first;
          const std::string text(static_cast<const char*>(source.data), source.size);
          const bool is_cut = whole->lengths(at).first > most_;
          cut_ += is_cut ? 1 : 0;
          print_answer(o_, input.names[at], o_.echo ? &text : nullptr, is_cut ? std::optional(most_) : std::nullopt,
                       answer_of(answers[at]));
        },
        [&](const std::string& name) {
          const std::string nothing;
          print_answer(o_, name, o_.echo ? &nothing : nullptr, std::nullopt, "");
        });
  }

  void report() const {
    if (cut_ == 0) return;
    std::fprintf(stderr, "%s %s longer than the model's %s tokens and %s cut\n",
                 with_commas(static_cast<long long>(cut_)).c_str(), cut_ == 1 ? "text is" : "texts are",
                 with_commas(most_).c_str(), cut_ == 1 ? "was" : "were");
  }

 private:
  // Whole characters only, whatever the tokens say.
  std::string answer_of(const std::vector<std::int32_t>& tokens) const {
    data::Utf8Filter filter;
    const std::string text = filter.push(tokenizer_->decode(tokens));
    return text + filter.finish();
  }

  const PredictOptions& o_;
  runs::RunConfig config_;
  std::shared_ptr<models::EncoderDecoder> model_;
  data::TokenizerPointer tokenizer_;
  std::int64_t most_;
  at::Device device_ = at::kCPU;
  std::size_t cut_ = 0;
};

}  // namespace

void predict_text_to_text(const PredictOptions& o) {
  Answering answering(o);
  data::DatasetInfo info;
  info.name = answering.config().data.task;
  info.vocabulary = data::kByteVocabulary;
  const data::DataConfig reading = train::uncut(answering.config().data);
  AnsweredInputs inputs(o, reading, info);
  const std::function<void(std::size_t)> progress =
      inputs.size() ? progress_line("predict", "examples", *inputs.size()) : std::function<void(std::size_t)>();
  bool begun = false;
  while (const std::optional<data::PredictionInput> input = inputs.next()) {
    if (!begun && o.output == "tsv") std::printf(o.echo ? "input\ttext\toutput\n" : "input\toutput\n");
    begun = true;
    answering.answer(*input, progress);
  }
  answering.report();
  inputs.report();
}

}  // namespace cosformer::cli
