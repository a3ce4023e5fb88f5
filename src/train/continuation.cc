#include "train/continuation.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"

namespace cosformer::train {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

std::string size_text(std::int64_t width, std::int64_t height) {
  return width == 0 ? "no images" : fmt::format("images of {} x {}", width, height);
}

}  // namespace

Schedule schedule_of(const runs::TrainConfig& config, const runs::TrainState& state) {
  const std::int64_t begin = state.continued_at.empty() ? 0 : state.continued_at.back();
  const std::int64_t steps = state.total_steps - begin;
  const std::int64_t warmup =
      config.warmup_steps > 0 ? config.warmup_steps : std::llround(config.warmup_fraction * static_cast<double>(steps));
  return {config.schedule, config.lr, config.final_lr, warmup, steps, begin, state.rate_before};
}

std::int64_t steps_in_all(const runs::TrainConfig& config, double steps_per_epoch, std::int64_t behind) {
  if (config.steps > 0) return config.steps;
  return behind + std::max<std::int64_t>(1, std::llround(std::ceil(steps_per_epoch * config.epochs)));
}

void require_steps_left(const std::string& run, const runs::TrainState& state) {
  if (state.step < state.total_steps) return;
  throw UserError(
      fmt::format("'{}' has taken {} steps, and {} in all are asked for: --steps and train.epochs count from the run's "
                  "beginning. For 100 steps more say --steps {}",
                  run, with_commas(state.step), with_commas(state.total_steps), state.step + 100));
}

bool continuation_is_due(const runs::RunConfig& config, const runs::TrainState& state) {
  return config.train.continued > static_cast<std::int64_t>(state.continued_at.size());
}

void count_continuation(const std::string& run, runs::RunConfig& config, const runs::TrainState& state,
                        const std::string& data_name, bool names_data) {
  const bool other_data = state.data_name != data_name;
  if (other_data && !names_data) {
    throw UserError(fmt::format(
        "the data are not those that '{}' was trained on; to go on with these, name them with --data", run));
  }
  const bool asks_for_more = other_data || runs::to_toml(runs::read_run(run)) != runs::to_toml(config);
  if (asks_for_more && !continuation_is_due(config, state)) ++config.train.continued;
}

void begin_continuation(const runs::RunConfig& config, const std::string& data_name, runs::TrainState& state) {
  const double rate = state.rate < 0 ? schedule_of(config.train, state).at(state.step) : state.rate;
  state.continued_at.resize(static_cast<std::size_t>(config.train.continued), state.step);
  state.rate_before = rate;
  state.evaluations_since_best = 0;
  state.total_steps = 0;
  if (state.data_name == data_name) return;
  state.data_name = data_name;
  if (state.position.batch > 0) state.position = {state.position.epoch + 1, 0};
  state.best.reset();
  state.best_loss.reset();
  state.best_step = state.step;
}

data::TaskData fitted_task(const data::TaskData& task, const models::InputConfig& made) {
  const data::DatasetInfo& info = task.train->info();
  const auto refuse = [](const std::string& here, const std::string& there) {
    throw UserError(
        fmt::format("the run cannot go on with these data: they have {}, and its model was made for {}", here, there));
  };
  if (info.classes != made.classes) refuse("the classes " + listed(info.classes), listed(made.classes));
  if (info.pairs != made.pairs) refuse(info.pairs ? "pairs" : "no pairs", made.pairs ? "pairs" : "single sequences");
  if (info.width != made.image_width || info.height != made.image_height) {
    refuse(size_text(info.width, info.height), size_text(made.image_width, made.image_height));
  }
  if (made.vocabulary > 0 && info.vocabulary > made.vocabulary) {
    refuse(with_commas(info.vocabulary) + " tokens", with_commas(made.vocabulary));
  }
  data::TaskData fitted = task;
  std::size_t cut = 0;
  for (data::DatasetPointer* part : {&fitted.train, &fitted.valid, &fitted.test}) {
    for (std::size_t i = 0; i < (*part)->size(); ++i) {
      const data::Lengths lengths = (*part)->lengths(i);
      cut += std::max(lengths.first, lengths.second) > made.max_length ? 1 : 0;
    }
    *part = data::shorten(*part, made.max_length);
  }
  fitted.max_length = made.max_length;
  if (cut > 0) {
    fitted.notes.push_back(fmt::format("{} examples are longer than the model's {} and were cut",
                                       with_commas(static_cast<long long>(cut)), with_commas(made.max_length)));
  }
  return fitted;
}

std::string describe_continuation(const runs::TrainState& state, bool other_data) {
  return fmt::format(
      "continued at step {}: {} more steps{}; the optimiser goes on, and the learning rate begins its schedule again",
      with_commas(state.step), with_commas(state.total_steps - state.step),
      other_data ? ", on other data, whose validation part decides anew about the best weights" : "");
}

}  // namespace cosformer::train
