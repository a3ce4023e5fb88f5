// `cosformer attention-map`: the weights of a head for an input, as a picture and as numbers.
#include <memory>
#include <optional>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "cli/attention_map/attention_look.h"
#include "cli/attention_map/attention_map_language.h"
#include "cli/attention_map/token_labels.h"
#include "cli/command.h"
#include "cli/dataset_info.h"
#include "cli/terminal/lists.h"
#include "cli/terminal/numbers.h"
#include "cli/terminal/progress_line.h"
#include "data/batches/batch.h"
#include "data/readers/unlabelled/prediction_input.h"
#include "data/tasks/listops/listops.h"
#include "runs/trained_models.h"
#include "train/inputs/batching.h"
#include "train/inputs/device_batch.h"

namespace cosformer::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string config, task, attention, data_path, input, format = "auto", out = "attention-map";
  std::vector<std::string> assignments;
  PromptOptions prompt;
  long long example = 1, layer = 1, head = 1;
  bool json = false;
};

// A model to look into.
struct Looked {
  std::string name;
  std::shared_ptr<models::Classifier> model;
  runs::RunConfig config;
};

runs::RunConfig fresh_config(const Options& o, const std::string& attention) {
  runs::RunConfig config;
  Settings settings;
  runs::add_settings(settings, config);
  if (!o.config.empty()) settings.read_toml_file(o.config);
  for (const std::string& assignment : o.assignments) settings.assign(assignment);
  if (!o.task.empty()) settings.set("data.task", o.task, "--task");
  if (!o.data_path.empty()) settings.set("data.path", o.data_path, "--data");
  settings.set("model.attention", attention, "--attention");
  models::apply_preset(config.model, settings);
  runs::require_possible(config);
  return config;
}

// Side by side on one input, they must all be able to read it.
void require_same_inputs(const std::string& first_run, const Looked& first, const std::string& run, const Looked& one) {
  const models::InputConfig &a = first.model->config().input, &b = one.model->config().input;
  if (a.vocabulary == b.vocabulary && a.pairs == b.pairs && a.image_width == b.image_width &&
      a.image_height == b.image_height && a.value_scale == b.value_scale) {
    return;
  }
  throw UserError(
      fmt::format("'{}' ({}) and '{}' ({}) do not read the same inputs; look at runs of one task side by side, or at "
                  "each by itself",
                  first_run, first.config.data.task, run, one.config.data.task));
}

std::vector<Looked> trained_models(const Options& o) {
  if (!o.config.empty() || !o.task.empty() || !o.attention.empty() || !o.assignments.empty()) {
    throw UserError("a RUN has its task, attention and settings; leave --config, --task, --attention and --set out");
  }
  std::vector<Looked> all;
  for (const std::string& run : o.runs) {
    Looked looked{"", runs::load_trained_classifier(run), runs::read_run(run)};
    looked.name = models::label_of(looked.config.model);
    all.push_back(std::move(looked));
    require_same_inputs(o.runs.front(), all.front(), run, all.back());
  }
  if (!o.data_path.empty()) all.front().config.data.path = o.data_path;
  return all;
}

data::TaskData open_data(const runs::RunConfig& config) {
  return data::open_task(config.data, progress_line(config.data.task, "examples"));
}

// Untrained ones; they need the task's data to know their vocabulary and length.
std::vector<Looked> fresh_models(const Options& o, const data::TaskData& task) {
  std::vector<Looked> all;
  for (const std::string& name : split_list(o.attention)) {
    Looked looked{"", nullptr, fresh_config(o, name)};
    const bool is_hybrid = !looked.config.model.pattern.empty();
    looked.name = (is_hybrid ? models::label_of(looked.config.model) : name) + ", untrained";
    models::ModelConfig model = looked.config.model;
    model.input = runs::input_of(task);
    at::manual_seed(static_cast<std::uint64_t>(looked.config.train.seed));
    looked.model = std::make_shared<models::Classifier>(model);
    looked.model->eval();
    all.push_back(std::move(looked));
  }
  return all;
}

data::Batch one_example(const Options& o, const Looked& first, const data::DatasetPointer& dataset) {
  if (static_cast<std::size_t>(o.example) > dataset->size()) {
    throw UserError(fmt::format("--example {}: there are {}", o.example, dataset->size()));
  }
  const models::InputConfig& input = first.model->config().input;
  runs::TrainConfig one = first.config.train;
  one.fixed_width = false;
  data::BatchOptions options = train::batch_options(one, input);
  options.width_multiple = 1;  // no padding: every row and column of the picture is a token
  const std::uint32_t index[] = {static_cast<std::uint32_t>(o.example - 1)};
  data::Batch batch = data::make_batch(*dataset, index, options);
  require_few_tokens(batch.first.width);
  return batch;
}

// The weights of the model's layer for the batch.
SeenModel look(const Looked& looked, const data::Batch& batch, long long layer) {
  const std::int64_t longest = looked.model->config().input.max_length;
  if (batch.first.width > longest) {
    throw UserError(
        fmt::format("the input has {} tokens, and {} reads {}; give a shorter one with --input or --example",
                    with_commas(batch.first.width), looked.name, with_commas(longest)));
  }
  return cli::look(*looked.model, looked.name, layer,
                   [&] { train::logits_of(*looked.model, train::to_device(batch, at::kCPU)); });
}

// What the tokens of a text are called, one for each row of the weights; empty for images and rows of numbers.
std::vector<std::string> labels_of(const Looked& looked, const SeenModel& seen, const data::SequenceBatch& sequence) {
  const models::InputConfig& input = looked.model->config().input;
  const bool listops = looked.config.data.task == "listops";
  const bool bytes = input.vocabulary == data::kByteVocabulary && looked.config.data.task != "token_sequences";
  if (input.image_width > 0 || sequence.tokens.empty() || (!listops && !bytes)) return {};
  std::vector<std::uint8_t> stored;
  for (std::int64_t at = 0; at < sequence.width; ++at) {
    stored.push_back(static_cast<std::uint8_t>(sequence.tokens[static_cast<std::size_t>(at)] - data::kFirstToken));
  }
  std::vector<std::string> labels = listops ? std::vector<std::string>{} : byte_labels(stored);
  for (std::size_t at = 0; listops && at < stored.size(); ++at) {
    labels.emplace_back(data::listops::text_of(stored[at]));
  }
  // The token that a classifier may put before the text.
  if (static_cast<std::size_t>(seen.weights.size(1)) > labels.size()) labels.insert(labels.begin(), "cls");
  return labels;
}

void run_attention_map(const Options& o) {
  const bool language = !o.runs.empty() && runs::is_language(runs::read_run(o.runs.front()));
  if (language) {
    if (!o.input.empty() || !o.config.empty() || !o.task.empty() || !o.attention.empty() || !o.assignments.empty() ||
        !o.data_path.empty()) {
      throw UserError(
          fmt::format("'{}' is a language model: it reads --prompt or --prompt-file; leave --input, --data, --config, "
                      "--task, --attention and --set out",
                      o.runs.front()));
    }
    map_language_models(o.prompt, {o.out, o.layer, o.head, o.json}, o.runs);
    return;
  }
  if (!o.prompt.given().empty()) {
    throw UserError(o.prompt.given() + " is for language models; give --input");
  }
  if (o.runs.empty() && o.attention.empty()) {
    throw UserError("say what to look into: the folder of a RUN, or --attention NAME for an untrained model");
  }
  if (o.runs.empty() && o.task.empty() && o.config.empty()) {
    throw UserError("an untrained model needs a task: give --task NAME or --config FILE");
  }
  std::optional<data::TaskData> task;
  if (o.runs.empty()) task = open_data(fresh_config(o, split_list(o.attention).front()));
  std::vector<Looked> all = o.runs.empty() ? fresh_models(o, *task) : trained_models(o);
  Looked& first = all.front();
  data::DatasetPointer dataset;
  if (!o.input.empty()) {
    const data::DatasetInfo info = dataset_info_of(first.model->config().input, first.config.data.task);
    dataset = data::read_prediction_input(o.input, first.config.data, info, {o.format, false}).dataset;
  } else {
    if (!task) task = open_data(first.config);
    dataset = task->test;
  }
  const data::Batch batch = one_example(o, first, dataset);
  std::vector<SeenModel> seen;
  for (const Looked& looked : all) {
    seen.push_back(look(looked, batch, o.layer));
    seen.back().tokens = labels_of(looked, seen.back(), batch.first);
  }
  write_looks({o.out, o.layer, o.head, o.json}, seen);
}

}  // namespace

void add_attention_map(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option("RUN", o->runs, "Folders of runs; two or more are drawn side by side on the same input.");
  app.add_option(
      "--input", o->input,
      "Reads the input from this file as predict does, or from standard input: -; by default from the test part.");
  app.add_option("--prompt", o->prompt.text, "Gives language models this text to read.");
  app.add_option("--prompt-file", o->prompt.file,
                 "Gives language models the text of this file, or of standard input: -.");
  app.add_option("--format", o->format,
                 "Reads text in this format: lines, tsv, csv or jsonl; auto: by the file's name.")
      ->capture_default_str();
  app.add_option("--example", o->example, "Draws this one of the inputs, counted from 1.")
      ->check(whole_number(1, 1LL << 31))
      ->capture_default_str();
  app.add_option("--layer", o->layer, "Draws this layer, counted from 1.")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app.add_option("--head", o->head, "Draws this head, counted from 1; the table has all.")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  app.add_option("--attention", o->attention,
                 "Draws untrained models with these mechanisms, separated by commas, instead of a RUN.");
  app.add_option("--task", o->task, "Makes untrained models for this task.");
  app.add_option("--config", o->config, "Reads the settings of untrained models from this TOML file.");
  app.add_option("--set", o->assignments,
                 "Sets a setting of untrained models, KEY=VALUE; it may be given several times.")
      ->allow_extra_args(false);
  app.add_option("--data", o->data_path, "Reads the task's data from this file or folder.");
  app.add_option("--out", o->out, "Writes map.png, map.svg, weights-1.tsv and summary.json to this folder.")
      ->capture_default_str();
  app.add_flag("--json", o->json, "Prints the summary as JSON.");
  app.footer(
      "The weights are those with which the mechanism really sums values: it is run on values that are columns of the\n"
      "identity, whatever the mechanism. Row i, column j: what query i takes of token j. The table says how many\n"
      "weights are negative, how far a query looks on average, and how much of it stays within 16 tokens.\n\n"
      "examples:\n"
      "  cosformer attention-map runs/listops-cosformer-0 runs/listops-softmax-0 --layer 2\n"
      "  echo '[MAX 2 9 [MIN 4 7 ] 0 ]' | cosformer attention-map runs/listops-cosformer-0 --input -\n"
      "  cosformer attention-map --task listops --attention cosformer,softmax --head 3\n"
      "  cosformer attention-map runs/book --prompt 'Once upon a time' --layer 2 --head 4");
  app.callback([o] { run_attention_map(*o); });
}

}  // namespace cosformer::cli
