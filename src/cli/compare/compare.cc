// `cosformer compare`: tasks × mechanisms × seeds, trained one after the other, and what came out side by side.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/progress.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/compare/compare_recall.h"
#include "cli/compare/compare_report.h"
#include "cli/compare/compare_run.h"
#include "cli/compare/compare_speed.h"
#include "cli/terminal/numbers.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  CompareFlags flags;
  bool json = false, dry_run = false;
};

std::string command_text(const CompareFlags& f) {
  std::string text = "cosformer compare";
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) text += std::string(" ") + flag + " " + value;
  };
  add("--config", f.config);
  add("--task", f.task);
  add("--attention", f.attention);
  add("--data", f.data_path);
  add("--device", f.device);
  add("--lengths", f.lengths);
  for (const std::string& assignment : f.assignments) add("--set", assignment);
  if (f.seeds > 0) add("--seeds", std::to_string(f.seeds));
  if (f.steps > 0) add("--steps", std::to_string(f.steps));
  if (f.unmatched) text += " --unmatched";
  if (f.speed_only) text += " --speed-only";
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

std::vector<CellResult> results_of(const std::vector<PlannedCell>& cells) {
  std::vector<CellResult> results;
  for (const PlannedCell& cell : cells) results.push_back(cell.result);
  return results;
}

std::string describe_speed(const CompareConfig& config) {
  return fmt::format(
      "Whole optimiser steps, and forward passes, of a classifier of random tokens, {} a step, each model and length "
      "in a process of its own (cosformer bench train), {} CPU threads. The settings are in speed/settings.txt.",
      config.speed.batch, at::get_num_threads());
}

void print_plan(const ComparePlan& plan) {
  Table table({"cell", "task", "model", "seed", "steps", "feed-forward", "parameters", ""});
  for (std::size_t at = 0; at < plan.cells.size(); ++at) {
    const PlannedCell& cell = plan.cells[at];
    const CellResult& r = cell.result;
    if (r.state == CellState::kCannot) {
      table.add({std::to_string(at + 1), r.task, r.name, std::to_string(r.seed), "", "", "", "cannot be: " + r.reason});
      continue;
    }
    table.add({std::to_string(at + 1), r.task, r.name, std::to_string(r.seed), with_commas(cell.steps),
               std::to_string(cell.config.model.feed_forward), with_commas(r.parameters), ""});
  }
  std::printf("%s", table.text().c_str());
}

class Comparison {
 public:
  explicit Comparison(const Options& o)
      : options_(o),
        config_(compare_config_from(o.flags)),
        folder_(o.flags.out.empty() ? "compare/" + config_.name : o.flags.out) {}

  void run() {
    require_own_folder();
    if (!options_.flags.speed_only) plan_ = plan_comparison(config_, folder_);
    if (options_.dry_run) {
      print_plan(plan_);
      return;
    }
    require_some_cell();
    make_folder();
    if (config_.threads > 0) {  // the cells' processes inherit it
      setenv("OMP_NUM_THREADS", std::to_string(config_.threads).c_str(), 1);
      at::set_num_threads(static_cast<int>(config_.threads));
    }
    const runs::RunLock lock(folder_);
    try {
      say(fmt::format("comparison in {}: {} cells, {} measurements of speed", folder_, plan_.cells.size(),
                      config_.models.size() * config_.speed.lengths.size()));
      for (const std::string& note : plan_.notes) say("note: " + note);
      run_cells(plan_.cells, [this](const std::string& line) { say(line); });
      if (!config_.speed.lengths.empty()) speed_ = measure_speed(config_, folder_);
    } catch (const Interrupted&) {
      say("stopped; the same command goes on");
      throw;
    }
    report();
  }

 private:
  void require_own_folder() const {
    const bool is_new = !fs::exists(folder_) || (fs::is_directory(folder_) && fs::is_empty(folder_));
    if (!is_new && (!fs::is_directory(fs::path(folder_) / "cells") || runs::is_run(folder_))) {
      throw UserError(fmt::format("'{}' exists and is not a comparison; choose another folder with --out", folder_));
    }
  }

  void make_folder() const {
    std::error_code error;
    fs::create_directories(fs::path(folder_) / "cells", error);
    if (error) throw file_failure("make the folder", folder_, error.value());
  }

  // Where no cell can be, the first reason is likely all of theirs: a missing file, a wrong column.
  void require_some_cell() const {
    const bool none = std::all_of(plan_.cells.begin(), plan_.cells.end(),
                                  [](const PlannedCell& cell) { return cell.result.state == CellState::kCannot; });
    if (none && !plan_.cells.empty()) {
      const CellResult& first = plan_.cells.front().result;
      throw UserError(fmt::format("none of the {} cells can be; {} with {}: {}", plan_.cells.size(), first.task,
                                  first.name, first.reason));
    }
  }

  // Lines for people; with --json standard output is for machines.
  void say(const std::string& line) const { std::fprintf(options_.json ? stderr : stdout, "%s\n", line.c_str()); }

  void report() {
    CompareReport report;
    report.title = "Comparison: " + config_.name;
    report.command = command_text(options_.flags);
    report.notes = plan_.notes;
    report.cells = results_of(plan_.cells);
    report.floors = plan_.floors;
    report.speed = speed_;
    report.speed_settings = describe_speed(config_);
    try {
      report.plots = draw_plots(report.cells, report.floors, report.speed, (fs::path(folder_) / "plots").string());
    } catch (const Failure& failure) {
      report.notes.push_back(std::string("no pictures: ") + failure.what());
      say("note: " + report.notes.back());
    }
    const std::string path = (fs::path(folder_) / "report.html").string();
    write_file(path, report_html(report));
    const nlohmann::ordered_json json = to_json(report.cells, report.floors, report.speed);
    write_file((fs::path(folder_) / "results.json").string(), json.dump(1) + "\n");
    if (options_.json) {
      std::printf("%s\n", json.dump(1).c_str());
    } else {
      if (!report.cells.empty()) std::printf("\n%s", compare_table(rows_of(report.cells), report.floors).c_str());
      std::printf("%s", recall_tables(report.cells).c_str());
      if (!speed_.empty()) std::printf("\n%s", speed_table(speed_).c_str());
      std::printf("\nreport: %s (numbers: results.json, pictures: plots/)\n", path.c_str());
    }
    const auto failed = std::count_if(report.cells.begin(), report.cells.end(),
                                      [](const CellResult& cell) { return cell.state == CellState::kFailed; });
    if (failed > 0) {
      std::fprintf(stderr, "cosformer: %td of %zu cells failed; the same command tries them again\n", failed,
                   report.cells.size());
      throw Unsuccessful{};
    }
  }

  Options options_;
  CompareConfig config_;
  std::string folder_;
  ComparePlan plan_;
  std::vector<SpeedPoint> speed_;
};

}  // namespace

void add_compare(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  CompareFlags& f = o->flags;
  app.add_option("--config", f.config, "Reads what to compare from this TOML file; configs/compare/ has some.");
  app.add_option("--task", f.task,
                 "Compares on these tasks, separated by commas; of a config with [[task]]s only on these.");
  app.add_option("--attention", f.attention,
                 "Compares these mechanisms, separated by commas, or all, in place of the config's.");
  app.add_option("--seeds", f.seeds, "Trains each model this many times, with different seeds.")
      ->check(whole_number(1, 10000));
  app.add_option("--steps", f.steps, "Trains each model for this many optimiser steps.")
      ->check(whole_number(1, 1000000000000));
  app.add_option("--set", f.assignments, "Sets a setting of every training, KEY=VALUE; it may be given several times.")
      ->allow_extra_args(false);
  app.add_option("--data", f.data_path, "Reads the data from this file or folder.");
  app.add_option("--device", f.device, "Trains on this device: auto, cpu or cuda.");
  app.add_option("--lengths", f.lengths,
                 "Measures speed and memory at these lengths in tokens, separated by commas; none: not at all.");
  app.add_option("--out", f.out, "Writes the comparison to this folder; by default compare/NAME-OF-THE-CONFIG.");
  app.add_flag("--unmatched", f.unmatched,
               "Leaves the feed-forward parts as wide as set, so that models differ in their number of parameters.");
  app.add_flag("--speed-only", f.speed_only,
               "Trains nothing and only makes the table of speed and memory by length, 1,024 to 65,536 by default.");
  app.add_flag("--dry-run", o->dry_run, "Shows what would be trained, with steps and parameters, and stops.");
  app.add_flag("--json", o->json, "Prints the results as JSON on standard output.");
  app.footer(
      "Trains every model on every task with every seed, one after the other, each in a process of its own, and ends\n"
      "with a table (test accuracy, of language models bits per byte and perplexity, as mean ± deviation over the\n"
      "seeds, an accuracy of one seed ± its standard error; steps/s of training and inference, peak memory,\n"
      "parameters; first what trivial rules reach) and report.html, which has the pictures in it.\n\n"
      "Models are made equally large: their feed-forward parts are adjusted until the parameters agree with those of\n"
      "the first model within about 1% (--unmatched leaves them). All take the same steps.\n\n"
      "Ctrl-C saves; the same command goes on, also after a kill: finished cells are kept, a begun one resumes. A\n"
      "cell that fails is reported and tried again next time; one whose mechanism cannot do the task says so.\n\n"
      "A config is what cosformer train reads, with [compare] (tasks, attention, seeds, lengths, match_parameters)\n"
      "and models that are a mechanism with settings of their own:\n"
      "  [[cell]]\n"
      "  name = \"cosformer, identity\"\n"
      "  attention = \"cosformer\"\n"
      "  set = [\"attention.feature_map=identity\"]\n\n"
      "examples:\n"
      "  cosformer compare --config configs/compare/quick.toml\n"
      "  cosformer compare --task listops --attention cosformer,softmax,linear --seeds 3 --steps 2000\n"
      "  cosformer compare --speed-only --attention all");
  app.callback([o] { Comparison(*o).run(); });
}

}  // namespace cosformer::cli
