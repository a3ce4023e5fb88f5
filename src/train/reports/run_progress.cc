#include "train/reports/run_progress.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/formats/json_text.h"
#include "base/table.h"
#include "runs/checkpoint.h"
#include "runs/result_file.h"

namespace cosformer::train {

std::optional<RunProgress> progress_of(const std::string& run) {
  std::int64_t result_steps = -1, result_best = 0;
  if (const std::optional<nlohmann::ordered_json> result = runs::read_result(run)) {
    const nlohmann::json object(*result);
    result_steps = json_whole(object, "steps", 0, runs::result_path(run));
    result_best = json_whole(object, "best_step", 0, runs::result_path(run));
  }
  if (const std::optional<runs::TrainState> state = runs::newest_state(run)) {
    return RunProgress{state->step, state->total_steps, static_cast<std::int64_t>(state->position.epoch),
                       state->best_step, result_steps == state->step};
  }
  if (result_steps < 0) return std::nullopt;
  return RunProgress{result_steps, result_steps, 0, result_best, true};
}

std::string in_words(const RunProgress& progress, const std::string& run) {
  const auto number = [](std::int64_t value) { return with_commas(value); };
  std::string text = fmt::format("{} of {}", number(progress.step), number(progress.total_steps));
  if (progress.epoch > 0) {
    text += fmt::format(" ({}{} complete)", number(progress.epoch), progress.epoch == 1 ? " epoch" : " epochs");
  }
  if (progress.best_step > 0) text += ", best at step " + number(progress.best_step);
  if (!progress.ended) return fmt::format("{}; not ended, go on with: cosformer train --resume {}", text, run);
  return text +
         (progress.step < progress.total_steps ? "; ended early, as nothing got better (train.patience)" : "; ended");
}

}  // namespace cosformer::train
