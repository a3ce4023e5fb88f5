#include "cli/compare/compare_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/regular_file.h"
#include "base/formats/json_text.h"
#include "base/progress.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/compare/compare_progress.h"
#include "cli/terminal/child_process.h"
#include "runs/result_file.h"
#include "runs/run_tokenizer.h"
#include "train/inputs/language_data.h"
#include "train/interrupt.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;

// A process that was told to stop when its parent died may still be saving.
constexpr int kLockPatience = 300;  // tenths of a second

std::string file_in(const CellResult& cell, const char* name) {
  return (fs::path(cell.folder) / name).string();
}

// Takes over what a finished training wrote; whether it has finished.
bool take_result(CellResult& cell) {
  const auto result = runs::read_result_summary(cell.folder);
  if (!result) return false;
  cell.accuracy = result->test_accuracy;
  cell.test_examples = result->test_examples;
  cell.loss = result->test_loss;
  cell.bits_per_byte = result->test_bits_per_byte;
  cell.train_steps_per_s = result->steps_per_second;
  cell.inference_steps_per_s = result->test_batches_per_second;
  cell.peak_bytes = result->peak_memory;
  cell.parameters = result->parameters;
  cell.seconds = result->seconds;
  cell.recall = recall_curves_of(*runs::read_result(cell.folder));
  cell.state = CellState::kFinished;
  return true;
}

struct Metrics {
  long long step = 0;
  double loss = 0;
};

// The last line of metrics.jsonl that is whole and tells a loss.
Metrics last_metrics(const CellResult& cell) {
  Metrics last;
  try {
    const RegularFile file(file_in(cell, "metrics.jsonl"));
    constexpr std::uint64_t kTail = 4096;
    const std::uint64_t begin = file.size() > kTail ? file.size() - kTail : 0;
    std::string tail(static_cast<std::size_t>(file.size() - begin), '\0');
    file.read(begin, tail.data(), tail.size());
    std::istringstream lines(tail);
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
      if (!entry.is_object() || !entry.contains("loss") || !entry["loss"].is_number()) continue;
      last = {json_whole(entry, "step", last.step, "metrics.jsonl"), entry["loss"].get<double>()};
    }
  } catch (const std::runtime_error&) {
    // It is only shown while the run goes on, which says itself what is wrong.
  }
  return last;
}

void wait_for_lock(const std::string& folder) {
  for (int attempt = 0;; ++attempt) {
    try {
      const runs::RunLock lock(folder);
      return;
    } catch (const UserError&) {
      if (attempt == kLockPatience || train::InterruptScope::requested()) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

std::string label_of(const CellResult& cell) {
  return fmt::format("{} {} seed {}", cell.task, cell.name, cell.seed);
}

class CellRunner {
 public:
  CellRunner(std::size_t cells, double work, const std::function<void(const std::string&)>& say)
      : cells_(cells), progress_(cells, work), say_(say) {}

  void run(std::size_t number, PlannedCell& cell) {
    CellResult& r = cell.result;
    progress_.begin(number, label_of(r), cell.work);
    if (!runs::is_run(r.folder)) runs::create_run(r.folder, cell.config);
    if (cell.tokenizer) runs::keep_tokenizer(r.folder, *cell.tokenizer);
    const std::string output = file_in(r, "output.txt");
    ChildEnd end;
    try {
      wait_for_lock(r.folder);
      const auto steps = static_cast<double>(std::max(cell.steps, 1LL));
      const double before = static_cast<double>(last_metrics(r).step) / steps;
      end = run_child({{"train", "--resume", r.folder}, output}, [&] {
        const Metrics now = last_metrics(r);
        const double share = std::max(before, static_cast<double>(now.step) / steps);
        progress_.update(
            share, before,
            now.step == 0 ? "" : fmt::format("step {}/{}  loss {}", now.step, cell.steps, significant(now.loss, 4)));
      });
    } catch (const UserError& error) {  // somebody else trains in its folder
      r.state = CellState::kFailed;
      r.reason = error.what();
    }
    const bool finished = end.exit_code == 0 && take_result(r);
    progress_.end();
    progress_.clear();
    if (end.interrupted && !finished) throw Interrupted{};
    if (!finished && r.state != CellState::kFailed) {
      r.state = end.exit_code == 2 ? CellState::kCannot : CellState::kFailed;
      r.reason = explain(end, output);
    }
    report(number, r, output);
    if (end.interrupted) throw Interrupted{};
  }

  void report(std::size_t number, const CellResult& r, const std::string& output) {
    std::string line = fmt::format("[{}/{}] {}: ", number, cells_, label_of(r));
    if (r.state == CellState::kFinished) {
      line += fmt::format(
          "{} in {}",
          r.is_language ? significant(r.bits_per_byte, 4) + " bits per byte" : percent_text({1, r.accuracy, 0}),
          human_seconds(r.seconds));
    } else {
      line += (r.state == CellState::kCannot ? "cannot be: " : "FAILED: ") + r.reason +
              (output.empty() ? "" : fmt::format(" (all that it said: {})", output));
    }
    const std::string left = number < cells_ ? progress_.time_left() : "";
    say_(line + (left.empty() ? "" : "; " + left));
  }

 private:
  std::size_t cells_;
  CompareProgress progress_;
  const std::function<void(const std::string&)>& say_;
};

}  // namespace

void run_cells(std::vector<PlannedCell>& cells, const std::function<void(const std::string& line)>& say) {
  double work = 0;
  std::size_t kept = 0;
  for (PlannedCell& cell : cells) {
    if (cell.result.state == CellState::kCannot) continue;
    if (take_result(cell.result)) {
      ++kept;
    } else {
      work += cell.work;
    }
  }
  if (kept > 0) say(fmt::format("{} of {} cells have finished before", kept, cells.size()));
  const train::InterruptScope interrupts;
  CellRunner runner(cells.size(), work, say);
  for (std::size_t at = 0; at < cells.size(); ++at) {
    PlannedCell& cell = cells[at];
    if (cell.result.state == CellState::kCannot) runner.report(at + 1, cell.result, "");
    if (cell.result.state == CellState::kPlanned) runner.run(at + 1, cell);
    if (train::InterruptScope::requested()) throw Interrupted{};
  }
}

}  // namespace cosformer::cli
