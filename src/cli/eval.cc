// `cosformer eval`: the trained model of a run on the test or validation part.
#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/progress_line.h"
#include "cli/run_report.h"
#include "data/floor.h"
#include "train/batching.h"
#include "train/precision.h"

namespace cosformer::cli {
namespace {

struct Options {
  std::string run, part = "test", data_path, device = "auto";
  long long batch_size = 0;
  bool json = false;
};

void run_eval(const Options& o) {
  train::RunConfig config = train::read_run(o.run);
  const std::shared_ptr<models::Classifier> model = train::load_trained(o.run);
  if (!o.data_path.empty()) config.data.path = o.data_path;
  config.train.device = o.device;
  const data::TaskData task = data::open_task(config.data, progress_line(config.data.task, "examples"));
  const models::InputConfig input = train::input_of(task), &trained = model->config().input;
  if (input.classes != trained.classes || input.vocabulary != trained.vocabulary || input.pairs != trained.pairs) {
    throw UserError("the data of task " + config.data.task + " are not those that '" + o.run +
                    "' was trained on: classes or vocabulary differ");
  }
  const data::DatasetPointer part = o.part == "test" ? task.test : o.part == "valid" ? task.valid : task.train;
  const at::Device device = train::device_of(config.train);
  model->to(device);
  train::EvaluationOptions options = train::evaluation_options(config.train, trained, device);
  if (o.batch_size > 0) options.batches.batch_size = static_cast<std::size_t>(o.batch_size);
  const train::Evaluation result =
      train::evaluate(*model, part, options, progress_line("eval", "examples", part->size()));
  if (o.json) {
    nlohmann::ordered_json json{{"run", o.run},
                                {"part", o.part},
                                {"attention", nn::label_of(config.model.attention)},
                                {"examples", result.examples},
                                {"accuracy", result.accuracy},
                                {"loss", result.loss},
                                {"examples_per_second", static_cast<double>(result.examples) / result.seconds}};
    for (const data::Floor& floor : data::floors(*task.train, *part)) json["floors"][floor.rule] = floor.accuracy;
    std::printf("%s\n", json.dump(1).c_str());
    return;
  }
  data::TaskData shown = task;
  shown.test = part;
  std::printf("%s\n", task.description.c_str());
  for (const std::string& note : task.notes) std::printf("note: %s\n", note.c_str());
  std::printf("%s part: %s examples, %s examples/s on %s\n\n%s", o.part.c_str(),
              with_commas(static_cast<long long>(result.examples)).c_str(),
              significant(static_cast<double>(result.examples) / result.seconds).c_str(), device.str().c_str(),
              accuracy_table(config, result, shown).c_str());
}

}  // namespace

void add_eval(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option("RUN", o->run, "folder of a run")->required();
  app.add_option("--part", o->part, "test, valid or train")
      ->check(CLI::IsMember({"test", "valid", "train"}))
      ->capture_default_str();
  app.add_option("--data", o->data_path, "where the task's data is now, if not where it was");
  app.add_option("--device", o->device, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--batch-size", o->batch_size, "by default as in training");
  app.add_flag("--json", o->json, "for machines");
  app.footer("Uses the run's best weights. The floors are what trivial rules reach on the same examples.");
  app.callback([o] { run_eval(*o); });
}

}  // namespace cosformer::cli
