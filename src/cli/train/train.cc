// `cosformer train`: a run from settings, or the continuation of one.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/runs/run_kinds.h"
#include "cli/terminal/numbers.h"
#include "cli/train/run_difference.h"
#include "cli/train/train_folder.h"
#include "nn/mechanisms/attention_config.h"
#include "runs/run_folder.h"
#include "runs/setting_readers.h"
#include "runs/trained_data.h"

namespace cosformer::cli {
namespace {

struct Options {
  std::vector<std::string> configs;
  std::string out, resume, continued;
  std::vector<std::string> assignments;
  std::string task, attention, data_path, device;
  long long seed = 0, steps = 0, from = -1;
  bool list_settings = false, skip_bad_rows = false;
};

std::string attention_list() {
  std::string text;
  for (const std::string& name : nn::attention_names()) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// All of them, or those that a task reads.
void print_settings(const std::string& task) {
  runs::RunConfig config;
  Settings settings;
  runs::add_settings(settings, config);
  Table table({"setting", "default", "meaning"});
  if (!task.empty()) settings.set("data.task", task, "--task");
  for (const Settings::Description& d : settings.descriptions()) {
    const bool is_read = task.empty() || runs::is_read_by(d.key, runs::reader_of(config.data)) ||
                         (task == "retrieval" && runs::is_read_by(d.key, "same_article"));
    if (is_read) table.add({d.key, d.value, d.help});
  }
  std::printf("%s", table.text().c_str());
}

// Defaults, then the file, then assignments and flags; then what the attention's name implies.
runs::RunConfig config_from(const Options& o) {
  runs::RunConfig config;
  Settings settings;
  runs::add_settings(settings, config);
  for (const std::string& file : o.configs) settings.read_toml_file(file);
  for (const std::string& assignment : o.assignments) settings.assign(assignment);
  if (!o.task.empty()) settings.set("data.task", o.task, "--task");
  std::error_code unknown;  // whatever is wrong with the path is told by who reads it
  if (!settings.was_set("data.task") && std::filesystem::is_regular_file(o.data_path, unknown)) {
    throw UserError(
        fmt::format("--data '{}' is a file; say with --task what it holds (cosformer train --help)", o.data_path));
  }
  if (!o.data_path.empty()) settings.set("data.path", o.data_path, "--data");
  if (!o.attention.empty()) settings.set("model.attention", o.attention, "--attention");
  if (!o.device.empty()) settings.set("train.device", o.device, "--device");
  if (o.seed != 0) settings.set("train.seed", std::to_string(o.seed), "--seed");
  if (o.steps != 0) settings.set("train.steps", std::to_string(o.steps), "--steps");
  if (o.skip_bad_rows) settings.set("data.skip_bad_rows", "true", "--skip-bad-rows");
  if (!settings.was_set("data.task")) {
    throw UserError(
        "nothing says what to learn; give --task, or a --config file with data.task (cosformer train --help)");
  }
  if (settings.was_set("train.continued")) {
    throw UserError("settings: train.continued is counted by cosformer train --continue; leave it out");
  }
  runs::require_read(settings, config.data);
  runs::apply_presets(config, settings);
  runs::require_possible(config);
  return config;
}

train::TrainRequest continuation_from(const Options& o) {
  if (!o.resume.empty() || !o.configs.empty() || !o.task.empty() || !o.attention.empty() || !o.out.empty() ||
      o.seed != 0 || o.from >= 0) {
    throw UserError(
        "--continue goes on with the run as it is, in its folder; it takes --steps, --data, --device, "
        "--skip-bad-rows and --set of settings of the training");
  }
  std::vector<Assignment> changes;
  for (const std::string& assignment : o.assignments) changes.push_back({"", assignment, "--set"});
  if (o.steps != 0) changes.push_back({"train.steps", std::to_string(o.steps), "--steps"});
  if (!o.data_path.empty()) changes.push_back({"data.path", o.data_path, "--data"});
  if (!o.device.empty()) changes.push_back({"train.device", o.device, "--device"});
  if (o.skip_bad_rows) changes.push_back({"data.skip_bad_rows", "true", "--skip-bad-rows"});
  return continuation_of(o.continued, changes);
}

train::TrainRequest request_from(const Options& o) {
  if (!o.continued.empty()) return continuation_from(o);
  train::TrainRequest request;
  if (o.from >= 0) request.from = o.from;
  if (!o.resume.empty()) {
    if (!o.configs.empty() || !o.assignments.empty() || !o.task.empty() || !o.attention.empty() || !o.out.empty() ||
        !o.device.empty() || o.seed != 0 || o.steps != 0 || o.skip_bad_rows) {
      throw UserError(
          "--resume goes on with the settings of the run; it takes no others (but --from, and --data where the "
          "data have moved)");
    }
    request.run = o.resume;
    request.config = runs::read_run(o.resume);
    request.data_moved = !o.data_path.empty();
    if (request.data_moved) request.config.data.path = o.data_path;
    runs::require_data_there(o.resume, request.config);
    return request;
  }
  request.config = config_from(o);
  request.run = o.out.empty() ? default_folder(request.config) : o.out;
  if (runs::is_run(request.run)) {
    const std::string difference = first_difference(runs::read_run(request.run), request.config);
    if (!difference.empty()) {
      throw UserError(
          fmt::format("'{}' is a run with other settings ({}); choose another folder with --out, or go on with it: "
                      "cosformer train --resume {}",
                      request.run, difference, request.run));
    }
  }
  return request;
}

void run_training(const Options& o, const CLI::App& app) {
  const bool nothing = app.count_all() <= 1;  // the command itself
  if (o.list_settings) {
    print_settings(o.task);
    return;
  }
  if (nothing) {
    std::fputs(app.help().c_str(), stderr);
    throw UserError("say what to train: --task and --data, --config FILE, --resume RUN or --continue RUN");
  }
  const train::TrainRequest request = request_from(o);
  kind_of_run(request.config).train(request);
}

}  // namespace

void add_train(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option(
      "--task", o->task,
      "Learns this task: listops, text, retrieval, image, pathfinder or fashion_mnist; of your own files text_files, "
      "text_pairs, idx_images, png_images, token_sequences or value_sequences; lm or mlm, a language model of text, "
      "autoregressive or masked; text_to_text, an encoder-decoder that answers one text with another; recall, texts of "
      "pairs and queries that show what a mechanism remembers.");
  app.add_option(
      "--data", o->data_path,
      "Reads the data from this file or folder; with --resume: where the run's data are now, if they have moved.");
  app.add_option(
      "--attention", o->attention,
      fmt::format("The model attends with this mechanism: {}. docs/attention describes them.", attention_list()));
  app.add_option(
         "--config", o->configs,
         "Reads settings from this TOML file; configs/ has some. It may be given several times: later files win.")
      ->allow_extra_args(false);
  app.add_option("--set", o->assignments, "Sets a single setting, KEY=VALUE; it may be given several times.")
      ->allow_extra_args(false);
  app.add_option("--out", o->out,
                 "Writes the run to this folder; by default runs/DATA-ATTENTION-SEED, DATA being the data's name.");
  app.add_option("--resume", o->resume, "Goes on with this run from its last checkpoint.")
      ->check([](const std::string& run) { return run.empty() ? std::string("expected the folder of a run") : ""; });
  app.add_option("--continue", o->continued,
                 "Goes on with this run beyond its end: to --steps, counted from its beginning; with --data on these "
                 "data, by default for train.epochs of them.")
      ->check([](const std::string& run) { return run.empty() ? std::string("expected the folder of a run") : ""; });
  app.add_option("--from", o->from,
                 "With --resume: goes on from the checkpoint of this step, for instance when the last one is damaged.")
      ->check(whole_number());
  app.add_option("--steps", o->steps, "Trains for this many optimiser steps; by default for train.epochs.")
      ->check(whole_number(1));
  app.add_option("--seed", o->seed, "Initial weights, order of examples and dropout follow from this number.")
      ->check(whole_number());
  app.add_option("--device", o->device,
                 "Trains on this device: auto, cpu or cuda; auto, the default, takes a GPU where there is one.");
  app.add_flag("--skip-bad-rows", o->skip_bad_rows, "Counts rows of the data that cannot be used, and goes on.");
  app.add_flag("--settings", o->list_settings,
               "Lists every setting with its default and meaning, with --task those that the task reads, and does "
               "nothing else.");
  app.footer(
      "Settings come from the defaults, then --config, then --set and the other flags. The run's folder gets the\n"
      "effective settings, checkpoints, the best weights, metrics.jsonl, TensorBoard files and a log. A run that was\n"
      "interrupted or killed goes on when the same command (or --resume RUN) is given again, exactly as if it had not\n"
      "stopped. Ctrl-C, or closing the terminal, saves first and exits with code 130; besides there is a checkpoint\n"
      "every train.checkpoint_minutes. A run that has ended goes on with --continue: its optimiser goes on, and the\n"
      "learning rate warms up from where it was and falls again over the steps that are new.\n\n"
      "examples:\n"
      "  cosformer train --task fashion_mnist --attention cosformer\n"
      "  cosformer train --config configs/lra/listops-fast.toml --data data/listops\n"
      "  cosformer train --task text_files --data reviews.tsv --set data.text_column=review --set train.epochs=3\n"
      "  cosformer train --config configs/lm/byte.toml --data book.txt\n"
      "  cosformer train --continue runs/reviews-cosformer_plus-0 --steps 2000\n"
      "  cosformer train --continue runs/reviews-cosformer_plus-0 --data newer.tsv --set train.lr=3e-4\n"
      "  cosformer train --task recall --attention cosformer_plus --set recall.pairs=32 --set recall.length=256\n"
      "  cosformer train --task text_to_text --data pairs.tsv --set data.source_column=en --set data.target_column=de");
  app.callback([o, &app] { run_training(*o, app); });
}

}  // namespace cosformer::cli
