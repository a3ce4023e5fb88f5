// `cosformer attention-map`: the weights of a head for an input, as a picture and as numbers.
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/table.h"
#include "cli/attention_picture.h"
#include "cli/command.h"
#include "cli/dataset_info.h"
#include "cli/lists.h"
#include "cli/numbers.h"
#include "cli/progress_line.h"
#include "data/batch.h"
#include "data/prediction_input.h"
#include "nn/attention_weights.h"
#include "nn/multi_head_attention.h"
#include "train/batching.h"
#include "train/device_batch.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;

// More of the output than this that the weights do not explain means that they are not the weights.
constexpr double kMostDeviation = 1e-3;

constexpr std::int64_t kMostTokens = 8192;

struct Options {
  std::vector<std::string> runs;
  std::string config, task, attention, data_path, input, format = "auto", out = "attention-map";
  std::vector<std::string> assignments;
  long long example = 1, layer = 1, head = 1;
  bool json = false;
};

// A model to look into.
struct Looked {
  std::string name;
  std::shared_ptr<models::Classifier> model;
  train::RunConfig config;
  at::Tensor weights;  // [H, T, T] of the layer
  double deviation = 0;
};

train::RunConfig fresh_config(const Options& o, const std::string& attention) {
  train::RunConfig config;
  Settings settings;
  train::add_settings(settings, config);
  if (!o.config.empty()) settings.read_toml_file(o.config);
  for (const std::string& assignment : o.assignments) settings.assign(assignment);
  if (!o.task.empty()) settings.set("data.task", o.task, "--task");
  if (!o.data_path.empty()) settings.set("data.path", o.data_path, "--data");
  settings.set("model.attention", attention, "--attention");
  models::apply_preset(config.model, settings);
  train::require_possible(config);
  return config;
}

// Side by side on one input, they must all be able to read it.
void require_same_inputs(const std::string& first_run, const Looked& first, const std::string& run, const Looked& one) {
  const models::InputConfig &a = first.model->config().input, &b = one.model->config().input;
  if (a.vocabulary == b.vocabulary && a.pairs == b.pairs && a.image_width == b.image_width &&
      a.image_height == b.image_height && a.value_scale == b.value_scale) {
    return;
  }
  throw UserError("'" + first_run + "' (" + first.config.data.task + ") and '" + run + "' (" + one.config.data.task +
                  ") do not read the same inputs; look at runs of one task side by side, or at each by itself");
}

std::vector<Looked> trained_models(const Options& o) {
  if (!o.config.empty() || !o.task.empty() || !o.attention.empty() || !o.assignments.empty()) {
    throw UserError("a RUN has its task, attention and settings; leave --config, --task, --attention and --set out");
  }
  std::vector<Looked> all;
  for (const std::string& run : o.runs) {
    Looked looked{"", train::load_trained(run), train::read_run(run), {}, 0};
    looked.name = models::label_of(looked.config.model);
    all.push_back(std::move(looked));
    require_same_inputs(o.runs.front(), all.front(), run, all.back());
  }
  if (!o.data_path.empty()) all.front().config.data.path = o.data_path;
  return all;
}

data::TaskData open_data(const train::RunConfig& config) {
  return data::open_task(config.data, progress_line(config.data.task, "examples"));
}

// Untrained ones; they need the task's data to know their vocabulary and length.
std::vector<Looked> fresh_models(const Options& o, const data::TaskData& task) {
  std::vector<Looked> all;
  for (const std::string& name : split_list(o.attention)) {
    Looked looked{name + ", untrained", nullptr, fresh_config(o, name), {}, 0};
    models::ModelConfig model = looked.config.model;
    model.input = train::input_of(task);
    at::manual_seed(static_cast<std::uint64_t>(looked.config.train.seed));
    looked.model = std::make_shared<models::Classifier>(model);
    looked.model->eval();
    all.push_back(std::move(looked));
  }
  return all;
}

data::Batch one_example(const Options& o, const Looked& first, const data::DatasetPointer& dataset) {
  if (static_cast<std::size_t>(o.example) > dataset->size()) {
    throw UserError("--example " + std::to_string(o.example) + ": there are " + std::to_string(dataset->size()));
  }
  const models::InputConfig& input = first.model->config().input;
  train::TrainConfig one = first.config.train;
  one.fixed_width = false;
  data::BatchOptions options = train::batch_options(one, input);
  options.width_multiple = 1;  // no padding: every row and column of the picture is a token
  const std::uint32_t index[] = {static_cast<std::uint32_t>(o.example - 1)};
  data::Batch batch = data::make_batch(*dataset, index, options);
  if (batch.first.width > kMostTokens) {
    throw UserError("the input has " + with_commas(batch.first.width) + " tokens; the weights of more than " +
                    with_commas(kMostTokens) + " are too many to write down: give a shorter one with --input");
  }
  return batch;
}

// Runs the model over the batch with a recorder in the place of the layer's mechanism.
void look(Looked& looked, const data::Batch& batch, long long layer) {
  std::vector<std::shared_ptr<nn::MultiHeadAttention>> layers;
  for (const auto& module : looked.model->modules()) {
    if (auto attention = std::dynamic_pointer_cast<nn::MultiHeadAttention>(module)) layers.push_back(attention);
  }
  if (static_cast<std::size_t>(layer) > layers.size()) {
    throw UserError("--layer " + std::to_string(layer) + ": " + looked.name + " has layers 1 to " +
                    std::to_string(layers.size()));
  }
  const std::int64_t longest = looked.model->config().input.max_length;
  if (batch.first.width > longest) {
    throw UserError("the input has " + with_commas(batch.first.width) + " tokens, and " + looked.name + " reads " +
                    with_commas(longest) + "; give a shorter one with --input or --example");
  }
  nn::MultiHeadAttention& attention = *layers[static_cast<std::size_t>(layer) - 1];
  const auto recorder = std::make_shared<nn::WeightRecorder>(attention.mechanism);
  attention.mechanism = recorder;
  const at::NoGradGuard no_grad;
  train::logits_of(*looked.model, train::to_device(batch, at::kCPU));
  looked.weights = recorder->weights()[0];
  looked.deviation = recorder->deviation();
  if (!(looked.deviation <= kMostDeviation)) {
    throw Failure("the weights of " + looked.name + " times its values are not its output (off by " +
                  significant(100 * looked.deviation) + "%): its output is not a sum of values");
  }
}

std::string tsv_of(const at::Tensor& weights) {
  const at::Tensor host = weights.to(at::kDouble).cpu().contiguous();
  const double* row = host.data_ptr<double>();
  std::string text;
  std::array<char, 32> number{};
  for (std::int64_t i = 0; i < host.size(0); ++i) {
    for (std::int64_t j = 0; j < host.size(1); ++j) {
      std::snprintf(number.data(), number.size(), j == 0 ? "%.9g" : "\t%.9g", *row++);
      text += number.data();
    }
    text += '\n';
  }
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

void report(const Options& o, const std::vector<Looked>& all, const std::vector<std::string>& files) {
  nlohmann::ordered_json json{{"layer", o.layer}, {"head", o.head}, {"files", files}};
  json["models"] = nlohmann::ordered_json::array();
  Table table({"", "head", "negative weights", "mean distance", "within 16 tokens", "entropy"});
  for (const Looked& looked : all) {
    nlohmann::ordered_json heads = nlohmann::ordered_json::array();
    for (std::int64_t head = 0; head < looked.weights.size(0); ++head) {
      const nn::WeightSummary s = nn::summarize_weights(looked.weights[head]);
      table.add({looked.name, std::to_string(head + 1), significant(100 * s.negative_share) + "%",
                 significant(s.mean_distance) + " tokens", significant(100 * s.near_share) + "%",
                 significant(s.entropy) + " nats"});
      heads.push_back({{"head", head + 1},
                       {"negative_share", s.negative_share},
                       {"mean_distance", s.mean_distance},
                       {"share_within_16", s.near_share},
                       {"entropy", s.entropy}});
    }
    json["models"].push_back({{"name", looked.name},
                              {"tokens", looked.weights.size(1)},
                              {"output_deviation", looked.deviation},
                              {"heads", heads}});
  }
  write_file((fs::path(o.out) / "summary.json").string(), json.dump(1) + "\n");
  if (o.json) {
    std::printf("%s\n", json.dump(1).c_str());
    return;
  }
  std::printf("layer %lld, %lld tokens; each row of weights is a query\n\n%s\n", o.layer,
              static_cast<long long>(all.front().weights.size(1)), table.text().c_str());
  for (const Looked& looked : all) {
    std::printf("%s: weights times values give the layer's output within %s of its greatest value\n",
                looked.name.c_str(), significant(looked.deviation, 2).c_str());
  }
  for (const std::string& file : files) std::printf("%s\n", file.c_str());
}

void run_attention_map(const Options& o) {
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
  for (Looked& looked : all) look(looked, batch, o.layer);
  std::error_code error;
  fs::create_directories(o.out, error);
  if (error) throw file_failure("make the folder", o.out, error.value());
  std::vector<std::string> files;
  std::vector<AttentionPicture> pictures;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const Looked& looked = all[at];
    if (o.head > looked.weights.size(0)) {
      throw UserError("--head " + std::to_string(o.head) + ": " + looked.name + " has heads 1 to " +
                      std::to_string(looked.weights.size(0)));
    }
    const at::Tensor weights = looked.weights[o.head - 1];
    const std::string name = "weights-" + std::to_string(at + 1) + ".tsv";
    files.push_back((fs::path(o.out) / name).string());
    write_file(files.back(), tsv_of(weights));
    pictures.push_back({looked.name, weights});
  }
  files.push_back(draw_attention(pictures, (fs::path(o.out) / "map").string()));
  report(o, all, files);
}

}  // namespace

void add_attention_map(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option("RUN", o->runs, "folders of runs; two or more are drawn side by side on the same input");
  app.add_option("--input", o->input, "a file, or - for standard input, as predict reads it; by default the test part");
  app.add_option("--format", o->format, "of text: auto (by the name), lines, tsv, csv, jsonl")->capture_default_str();
  app.add_option("--example", o->example, "which of the inputs")
      ->check(whole_number(1, 1LL << 31))
      ->capture_default_str();
  app.add_option("--layer", o->layer, "from 1 on")->check(whole_number(1, 1000))->capture_default_str();
  app.add_option("--head", o->head, "from 1 on: the one that is drawn; the table has all")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  app.add_option("--attention", o->attention, "untrained models instead of a RUN: mechanisms, separated by commas");
  app.add_option("--task", o->task, "of untrained models");
  app.add_option("--config", o->config, "of untrained models: settings from a TOML file");
  app.add_option("--set", o->assignments, "of untrained models: KEY=VALUE; may be repeated")->allow_extra_args(false);
  app.add_option("--data", o->data_path, "file or folder of the task's data");
  app.add_option("--out", o->out, "folder for map.png, map.svg, weights-1.tsv and summary.json")->capture_default_str();
  app.add_flag("--json", o->json, "the summary for machines");
  app.footer(
      "The weights are those with which the mechanism really sums values: it is run on values that are columns of the\n"
      "identity, whatever the mechanism. Row i, column j: what query i takes of token j. The table says how many\n"
      "weights are negative, how far a query looks on average, and how much of it stays within 16 tokens.\n\n"
      "examples:\n"
      "  cosformer attention-map runs/listops-cosformer-0 runs/listops-softmax-0 --layer 2\n"
      "  echo '[MAX 2 9 [MIN 4 7 ] 0 ]' | cosformer attention-map runs/listops-cosformer-0 --input -\n"
      "  cosformer attention-map --task listops --attention cosformer,softmax --head 3");
  app.callback([o] { run_attention_map(*o); });
}

}  // namespace cosformer::cli
