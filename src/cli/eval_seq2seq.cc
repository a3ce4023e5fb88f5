#include "cli/eval_seq2seq.h"

#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/table.h"
#include "cli/progress_line.h"
#include "data/text_to_text_floor.h"
#include "train/batching.h"
#include "train/precision.h"
#include "train/seq2seq_data.h"
#include "train/seq2seq_evaluation.h"

namespace cosformer::cli {
namespace {

using nlohmann::ordered_json;

struct Evaluated {
  std::string folder, label;
  train::Seq2SeqEvaluation evaluation;
  std::vector<data::Floor> floors;
};

Evaluated evaluate_run(const Seq2SeqEvalOptions& o, const std::string& folder) {
  train::RunConfig config = train::read_run(folder);
  if (!train::is_text_to_text(config)) {
    throw UserError("'" + folder + "' is no text-to-text model; compare runs of one kind");
  }
  config.train.device = o.device;
  config.data = train::read_run(o.runs.front()).data;  // all are judged by the same texts
  if (!o.data_path.empty()) config.data.path = o.data_path;
  const auto model = train::load_trained_encoder_decoder(folder);
  const at::Device device = train::device_of(config.train);
  model->to(device);
  const train::Seq2SeqData data =
      train::open_seq2seq_data(config, train::tokenizer_of_run(folder, model->config().tokenizer), model->config());
  const data::DatasetPointer part = o.part == "test"    ? data.task.test
                                    : o.part == "valid" ? data.task.valid
                                                        : data.task.train;
  train::EvaluationOptions options =
      train::evaluation_options(config.train, train::text_input(model->config()), device);
  if (o.batch_size > 0) options.batches.batch_size = static_cast<std::size_t>(o.batch_size);
  const data::DatasetPointer written = o.write > 0 ? train::written_examples(part, o.write) : part;
  const std::size_t work = part->size() + (o.write > 0 ? written->size() : 0);
  return {
      folder, models::label_of(model->config()),
      train::evaluate_seq2seq(*model, part, *data.tokenizer, o.write, options, progress_line("eval", "examples", work)),
      data::text_to_text_floors(*data.task.train, *written)};
}

std::string percent(double share) {
  return significant(100 * share, 4) + "%";
}

void print_table(const Seq2SeqEvalOptions& o, const std::vector<Evaluated>& runs) {
  const train::Seq2SeqEvaluation& first = runs.front().evaluation;
  const auto number = [](std::uint64_t value) { return with_commas(static_cast<long long>(value)); };
  std::printf("%s part: %s examples, %s tokens to write; %s answers written\n\n", o.part.c_str(),
              number(first.examples).c_str(), number(first.tokens).c_str(), number(first.written).c_str());
  Table table({"", "exact match", "loss", "perplexity", "tokens found"});
  for (const data::Floor& floor : runs.front().floors) {
    table.add({"floor: " + floor.rule, percent(floor.accuracy), "", "", ""});
  }
  for (const Evaluated& run : runs) {
    const train::Seq2SeqEvaluation& e = run.evaluation;
    table.add({run.label, e.written > 0 ? percent(e.exact_match()) : "", significant(e.loss(), 5),
               significant(e.perplexity(), 5), percent(e.token_accuracy())});
  }
  std::printf("%s", table.text().c_str());
}

void print_json(const Seq2SeqEvalOptions& o, const std::vector<Evaluated>& runs) {
  ordered_json json{{"part", o.part}, {"floors", ordered_json::object()}, {"runs", ordered_json::array()}};
  for (const data::Floor& floor : runs.front().floors) json["floors"][floor.rule] = floor.accuracy;
  for (const Evaluated& run : runs) {
    ordered_json entry{{"run", run.folder}, {"attention", run.label}};
    const train::PartResult result = train::part_result(run.evaluation);
    for (const auto& [name, value] : result.metrics) entry[name] = value;
    for (const auto& [name, value] : result.amounts) entry[name] = value;
    json["runs"].push_back(entry);
  }
  std::printf("%s\n", json.dump(1).c_str());
}

}  // namespace

void eval_seq2seq(const Seq2SeqEvalOptions& o) {
  std::vector<Evaluated> runs;
  for (const std::string& folder : o.runs) runs.push_back(evaluate_run(o, folder));
  if (o.json) {
    print_json(o, runs);
  } else {
    print_table(o, runs);
  }
}

}  // namespace cosformer::cli
