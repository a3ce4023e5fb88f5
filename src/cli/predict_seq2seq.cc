#include "cli/predict_seq2seq.h"

#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/table.h"
#include "cli/progress_line.h"
#include "data/prediction_input.h"
#include "data/stream_decoder.h"
#include "data/tokenized_text.h"
#include "train/batching.h"
#include "train/initial_weights.h"
#include "train/language_data.h"
#include "train/precision.h"
#include "train/seq2seq_data.h"
#include "train/seq2seq_evaluation.h"

namespace cosformer::cli {
namespace {

// Whole characters only, whatever the tokens say.
std::string text_of(const std::vector<std::int32_t>& tokens, const data::Tokenizer& tokenizer) {
  data::Utf8Filter filter;
  const std::string text = filter.push(tokenizer.decode(tokens));
  return text + filter.finish();
}

// On one line.
std::string escaped(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\r') {
      line += "\\r";
    } else if (c == '\t') {
      line += "\\t";
    } else if (c == '\\') {
      line += "\\\\";
    } else {
      line += c;
    }
  }
  return line;
}

void print_answer(const Seq2SeqPredictOptions& o, const std::string& name, const std::string& answer) {
  if (o.output == "jsonl") {
    const nlohmann::ordered_json json{{"input", name}, {"output", answer}};
    std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else if (o.output == "tsv") {
    std::printf("%s\t%s\n", name.c_str(), escaped(answer).c_str());
  } else {
    std::printf("%s\n", escaped(answer).c_str());
  }
}

}  // namespace

void predict_seq2seq(const Seq2SeqPredictOptions& o) {
  train::RunConfig config = train::read_run(o.run);
  config.train.device = o.device;
  const auto model = train::load_trained_encoder_decoder(o.run);
  const data::TokenizerPointer tokenizer = train::tokenizer_of_run(o.run, model->config().tokenizer);
  const models::InputConfig trained = train::text_input(model->config());
  data::DatasetInfo info;
  info.name = config.data.task;
  info.vocabulary = data::kByteVocabulary;
  data::PredictionInput input =
      data::read_prediction_input(o.input, train::uncut(config.data), info, {o.format, o.skip_bad_rows});
  if (o.first > 0 && static_cast<std::size_t>(o.first) < input.dataset->size()) {
    input.dataset = data::slice(input.dataset, 0, static_cast<std::size_t>(o.first));
  }
  const data::DatasetPointer whole = data::tokenize_dataset(input.dataset, *tokenizer);
  std::size_t cut = 0;
  for (std::size_t i = 0; i < whole->size(); ++i) cut += whole->lengths(i).first > trained.max_length ? 1 : 0;
  if (cut > 0) {
    std::fprintf(stderr, "%s texts are longer than the model's %s tokens and were cut\n",
                 with_commas(static_cast<long long>(cut)).c_str(), with_commas(trained.max_length).c_str());
  }
  const at::Device device = train::device_of(config.train);
  model->to(device);
  const auto answers = train::write_answers(*model, data::shorten(whole, trained.max_length), *tokenizer,
                                            train::evaluation_options(config.train, trained, device),
                                            progress_line("predict", "examples", whole->size()));
  if (o.output == "tsv") std::printf("input\toutput\n");
  for (std::size_t at = 0; at < answers.size(); ++at) {
    print_answer(o, input.names[at], text_of(answers[at], *tokenizer));
  }
  if (input.report.rows_skipped > 0) {
    std::fprintf(stderr, "skipped %s bad rows; the first: %s\n",
                 with_commas(static_cast<long long>(input.report.rows_skipped)).c_str(),
                 input.report.first_reasons.empty() ? "" : input.report.first_reasons.front().c_str());
  }
}

}  // namespace cosformer::cli
