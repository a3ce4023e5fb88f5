// `cosformer eval`: the trained model of a run on the test or validation part.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/eval_language.h"
#include "cli/eval_seq2seq.h"
#include "cli/numbers.h"
#include "cli/progress_line.h"
#include "cli/run_report.h"
#include "data/floor.h"
#include "data/tokenized_text.h"
#include "train/batching.h"
#include "train/initial_weights.h"
#include "train/precision.h"

namespace cosformer::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string part = "test", data_path, device = "auto";
  long long batch_size = 0, carry = 0, context = 0, write = 1000;
  bool json = false;
};

data::DatasetPointer part_of(const data::TaskData& task, const std::string& name) {
  return name == "test" ? task.test : name == "valid" ? task.valid : task.train;
}

EvaluatedRun evaluate_run(const std::string& folder, const Options& o, const data::TaskData& task) {
  EvaluatedRun run{folder, train::read_run(folder), {}};
  const std::shared_ptr<models::Classifier> model = train::load_trained(folder);
  const models::InputConfig& trained = model->config().input;
  models::InputConfig input = train::input_of(task);
  data::DatasetPointer part = part_of(task, o.part);
  if (const data::TokenizerPointer tokenizer = train::tokenizer_of_classifier(folder)) {
    part = data::tokenize_dataset(part, *tokenizer, trained.max_length);
    input.vocabulary = part->info().vocabulary;
  }
  if (input.classes != trained.classes || input.vocabulary != trained.vocabulary || input.pairs != trained.pairs) {
    throw UserError("'" + folder + "' was trained on other data than these (" + task.description +
                    "): classes or vocabulary differ");
  }
  run.config.train.device = o.device;
  const at::Device device = train::device_of(run.config.train);
  model->to(device);
  train::EvaluationOptions options = train::evaluation_options(run.config.train, trained, device);
  if (o.batch_size > 0) options.batches.batch_size = static_cast<std::size_t>(o.batch_size);
  run.evaluation = train::evaluate(*model, part, options, progress_line("eval", "examples", part->size()));
  return run;
}

void print_json(const Options& o, const std::vector<EvaluatedRun>& runs, const data::TaskData& task) {
  nlohmann::ordered_json json{{"part", o.part}, {"runs", nlohmann::ordered_json::array()}};
  for (const EvaluatedRun& run : runs) {
    const auto examples = static_cast<double>(run.evaluation.examples);
    json["runs"].push_back({{"run", run.folder},
                            {"attention", models::label_of(run.config.model)},
                            {"examples", run.evaluation.examples},
                            {"accuracy", run.evaluation.accuracy},
                            {"loss", run.evaluation.loss},
                            {"examples_per_second", examples / run.evaluation.seconds}});
  }
  for (const data::Floor& floor : data::floors(*task.train, *task.test)) json["floors"][floor.rule] = floor.accuracy;
  std::printf("%s\n", json.dump(1).c_str());
}

void run_eval(const Options& o) {
  const train::RunConfig first = train::read_run(o.runs.front());
  if (train::is_language(first)) {
    eval_language({o.runs, o.part, o.data_path, o.device, o.batch_size, o.carry, o.context, o.json});
    return;
  }
  if (o.carry > 0 || o.context > 0) throw UserError("--carry and --context are for language models");
  if (train::is_text_to_text(first)) {
    eval_seq2seq({o.runs, o.part, o.data_path, o.device, o.batch_size, o.write, o.json});
    return;
  }
  const bool tokenizes = std::any_of(o.runs.begin(), o.runs.end(), [](const std::string& folder) {
    return train::tokenizer_of_classifier(folder) != nullptr;
  });
  data::DataConfig data = tokenizes ? train::uncut(first.data) : first.data;
  if (!o.data_path.empty()) data.path = o.data_path;
  data::TaskData task = data::open_task(data, progress_line(data.task, "examples"));
  std::vector<EvaluatedRun> runs;
  for (const std::string& folder : o.runs) runs.push_back(evaluate_run(folder, o, task));
  task.test = part_of(task, o.part);  // what the floors are measured on
  if (o.json) {
    print_json(o, runs, task);
    return;
  }
  std::printf("%s\n", task.description.c_str());
  for (const std::string& note : task.notes) std::printf("note: %s\n", note.c_str());
  std::printf("%s part, %s examples:\n\n%s", o.part.c_str(),
              with_commas(static_cast<long long>(task.test->size())).c_str(),
              accuracy_table(runs, data::floors(*task.train, *task.test)).c_str());
}

}  // namespace

void add_eval(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option("RUN", o->runs, "folders of runs; several are compared on the data of the first")->required();
  app.add_option("--part", o->part, "test, valid or train")
      ->check(CLI::IsMember({"test", "valid", "train"}))
      ->capture_default_str();
  app.add_option("--data", o->data_path, "where the task's data is now, if not where it was");
  app.add_option("--device", o->device, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--batch-size", o->batch_size, "by default as in training")->check(whole_number(1, 1LL << 30));
  app.add_option("--carry", o->carry,
                 "language models: carry the state over so many tokens before beginning anew; by default as far as the "
                 "model can look back")
      ->check(whole_number(1, 1LL << 40));
  app.add_option("--context", o->context,
                 "language models that carry no state: tokens of each window that are only read, not predicted")
      ->check(whole_number(1, 1LL << 30));
  app.add_option("--write", o->write, "text to text: answers that are written and compared, at most; 0: none")
      ->check(whole_number(0, 1LL << 40))
      ->capture_default_str();
  app.add_flag("--json", o->json, "for machines");
  app.footer(
      "Uses the run's best weights. The floors are what trivial rules reach on the same examples. Of language models "
      "it\n"
      "tells loss, perplexity per token and per word, bits per byte, and how they fall with what was read before; the\n"
      "plot of that is RUN/context.svg. Of text to text it tells loss, perplexity and accuracy of the target's "
      "tokens,\n"
      "and the share of answers that are the target exactly.");
  app.callback([o] { run_eval(*o); });
}

}  // namespace cosformer::cli
