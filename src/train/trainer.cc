#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "cosformer/weights.h"
#include "runs/device.h"
#include "runs/result_file.h"
#include "train/continuation.h"
#include "train/divergence.h"
#include "train/interrupt.h"
#include "train/optimiser/schedule.h"
#include "train/reports/metrics_log.h"
#include "train/reports/time_estimate.h"
#include "train/result_writing.h"
#include "train/training_step.h"

namespace cosformer::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Training {
 public:
  Training(const TrainRequest& request, Job& job, const Observer& observer)
      : run_(request.run),
        config_(request.config),
        job_(job),
        observer_(observer),
        device_(runs::device_of(config_.train)),
        bfloat16_(runs::uses_bfloat16(config_.train, device_)),
        data_name_(job.data_name()),
        parameters_(job.module()),
        optimizer_(parameters_, config_.train),
        step_([&job](const StepInputs& inputs) { return job.loss(inputs); }, optimizer_, parameters_, config_.train,
              {device_, bfloat16_, job.is_always_the_same()}) {
    if (job.has_rates()) parameters_.set_rates([&job](const std::string& name) { return job.rate_of(name); });
    const std::vector<std::int64_t> steps = runs::checkpoint_steps(run_);
    state_.data_name = data_name_;
    if (request.from || !steps.empty()) {
      state_ = runs::load_checkpoint(run_, request.from ? *request.from : steps.back(), content(), data_name_,
                                     config_.train.continued + (request.continues ? 1 : 0));
      job_.restore_carried(runs::load_carried(run_, state_.step));
      if (request.continues) count_continuation(run_, config_, state_, data_name_, request.names_data);
      observer_.say("going on from step " + with_commas(state_.step));
      replace_lost_best();
    } else if (std::filesystem::exists(runs::result_path(run_))) {
      throw UserError(
          fmt::format("'{}' has ended and its checkpoints are gone, so there is nothing to go on from; begin a new run "
                      "with another --out",
                      run_));
    } else if (std::filesystem::exists(std::filesystem::path(run_) / "metrics.jsonl")) {
      observer_.say("there is no checkpoint yet: beginning with step 1");
    }
  }

  TrainResult run(bool continues);

 private:
  runs::CheckpointContent content() const {
    nn::NamedTensors weights;
    for (const auto& item : job_.module().named_parameters()) weights.emplace_back(item.key(), item.value());
    for (const auto& item : job_.module().named_buffers()) weights.emplace_back(item.key(), item.value());
    return {weights, optimizer_.state(), job_.model_config(), job_.carried()};
  }
  void replace_lost_best();
  void begin(bool continues);
  void tell_time_left();
  void one_step(MetricsLog& metrics);
  Diverged not_finite(const std::string& what, std::int64_t step, const std::vector<std::uint64_t>& places) const {
    return {what, run_, config_.train, bfloat16_, step, job_.name_places(places)};
  }
  void settle();
  void count_seconds();
  void log(MetricsLog& metrics);
  bool evaluates_now() const;
  void evaluate_and_keep_best(MetricsLog& metrics);
  void keep_best(const PartResult& valid);
  bool checkpoint_is_due(bool evaluates) const;
  void checkpoint();
  Ending steps(MetricsLog& metrics);
  TrainResult finish(Ending ending);

  struct Pending {
    at::Tensor loss;
    std::vector<std::uint64_t> places;
  };

  std::string run_;
  runs::RunConfig config_;
  Job& job_;
  const Observer& observer_;
  at::Device device_;
  bool bfloat16_;
  std::string data_name_;
  FlatParameters parameters_;
  AdamW optimizer_;
  TrainingStep step_;
  Schedule schedule_;
  runs::TrainState state_;
  std::vector<Pending> pending_;  // losses that are still on the device
  double last_loss_ = std::nan("");
  double tokens_per_second_ = 0;
  bool epoch_ended_ = false, best_was_lost_ = false, told_time_ = false;
  Clock::time_point process_begin_ = Clock::now(), counted_until_ = process_begin_;  // as seconds spent on steps
  double seconds_before_ = 0;
  std::int64_t first_step_ = 0;  // of this process
  double seconds_at_log_ = 0;    // spent on steps
  std::int64_t tokens_at_log_ = 0, checkpointed_step_ = -1;
  Clock::time_point checkpointed_at_ = process_begin_;
  std::optional<TimeEstimate> estimate_;
};

// Without the best weights there is nothing to end with: those of the checkpoint take their place.
void Training::replace_lost_best() {
  if (!state_.best || std::filesystem::exists(runs::best_weights_path(run_))) return;
  observer_.say(fmt::format(
      "the best weights (best.safetensors, of step {}) are gone; those of step {} are evaluated and take their place",
      with_commas(state_.best_step), with_commas(state_.step)));
  state_.best = state_.best_loss = std::nullopt;
  state_.evaluation_is_due = true;
  best_was_lost_ = true;
}

// Only when no step is under way on a device: what has been spent is then known.
void Training::tell_time_left() {
  count_seconds();
  estimate_->count_to({state_.step, state_.tokens, state_.training_seconds});
  const std::optional<double> left = estimate_->left(state_.step);
  if (!left) return;
  if (observer_.time_left) observer_.time_left(*left);
  constexpr double kWorthTelling = 10;
  if (std::exchange(told_time_, true) || *left < kWorthTelling) return;
  observer_.say(estimate_->describe(state_.step));
}

// Brings the losses to the host, which waits for the device, and looks at them.
void Training::settle() {
  if (pending_.empty()) return;
  std::vector<at::Tensor> losses;
  for (const Pending& p : pending_) losses.push_back(p.loss.reshape({}));
  const at::Tensor host = at::stack(losses).to(at::kDouble).cpu();
  const std::int64_t first_step = state_.step - static_cast<std::int64_t>(pending_.size()) + 1;
  for (std::size_t at = 0; at < pending_.size(); ++at) {
    const double loss = host[static_cast<std::int64_t>(at)].item<double>();
    if (!std::isfinite(loss)) {
      throw_diverged(not_finite(fmt::format("the loss is {}", loss), first_step + static_cast<std::int64_t>(at),
                                pending_[at].places));
    }
    state_.pending_losses.push_back(loss);
    last_loss_ = loss;
  }
  pending_.clear();
}

// Counts the time since it was last counted as spent on steps. What is not, evaluations and checkpoints, calls this
// before and moves counted_until_ after it.
void Training::count_seconds() {
  const Clock::time_point now = Clock::now();
  state_.training_seconds += std::chrono::duration<double>(now - counted_until_).count();
  counted_until_ = now;
}

void Training::one_step(MetricsLog& metrics) {
  std::vector<StepInputs> inputs;
  Pending pending;
  for (std::int64_t part = 0; part < config_.train.accumulate; ++part) {
    JobBatch batch = job_.next();
    inputs.push_back(std::move(batch.inputs));
    state_.position = batch.next;
    state_.tokens += batch.tokens;
    epoch_ended_ = batch.next.epoch != batch.position.epoch;
    pending.places.insert(pending.places.end(), batch.places.begin(), batch.places.end());
  }
  const std::int64_t number = state_.step + 1;
  try {
    pending.loss = step_.run(number, schedule_.at(number), inputs);
  } catch (const std::exception&) {  // the operator refuses decays that are no numbers
    settle();                        // an earlier loss may tell more
    for (const FlatParameters::Group& group : parameters_.groups()) {
      if (!group.values.isfinite().all().item<bool>()) {
        throw_diverged(not_finite("a weight is not finite", number, pending.places));
      }
    }
    throw;
  }
  state_.step = number;
  pending_.push_back(std::move(pending));
  if (state_.step % config_.train.log_every == 0) log(metrics);
  if (device_.is_cpu() || pending_.empty()) tell_time_left();
  observer_.step(state_, last_loss_, tokens_per_second_);
}

void Training::log(MetricsLog& metrics) {
  settle();
  double sum = 0;
  for (const double loss : state_.pending_losses) sum += loss;
  const double mean = sum / static_cast<double>(std::max<std::size_t>(state_.pending_losses.size(), 1));
  state_.pending_losses.clear();
  last_loss_ = mean;
  count_seconds();
  tokens_per_second_ =
      static_cast<double>(state_.tokens - tokens_at_log_) / std::max(state_.training_seconds - seconds_at_log_, 1e-9);
  state_.seconds = seconds_before_ + seconds_since(process_begin_);
  MetricsLog::Values values{{"epoch", static_cast<double>(state_.position.epoch)},
                            {"loss", mean},
                            {"lr", schedule_.at(state_.step)},
                            {"tokens", static_cast<double>(state_.tokens)},
                            {"tokens_per_second", std::round(tokens_per_second_)},
                            {"seconds", std::round(1000 * state_.seconds) / 1000}};
  if (!state_.continued_at.empty()) values.emplace_back("continued", static_cast<double>(state_.continued_at.size()));
  metrics.write(state_.step, values);
  seconds_at_log_ = state_.training_seconds;
  tokens_at_log_ = state_.tokens;
}

bool Training::evaluates_now() const {
  if (state_.step == state_.total_steps) return true;
  return config_.train.eval_every > 0 ? state_.step % config_.train.eval_every == 0 : epoch_ended_;
}

void Training::evaluate_and_keep_best(MetricsLog& metrics) {
  const PartResult valid = job_.evaluate(Part::kValid, InterruptScope::requested);
  MetricsLog::Values values;
  for (const auto& [name, value] : valid.metrics) values.emplace_back("valid_" + name, value);
  metrics.write(state_.step, values);
  keep_best(valid);
}

void Training::keep_best(const PartResult& valid) {
  const Decision decision = job_.decision();
  const double value = valid.at(decision.metric), loss = valid.at("loss");
  const bool better = decision.prefers(value, loss, state_.best, state_.best_loss);
  const std::string rate = fmt::format("  ({} tokens/s)", with_commas(std::llround(tokens_per_second_)));
  observer_.say(fmt::format("step {} of {}: loss {}, validation {}{}{}", with_commas(state_.step),
                            with_commas(state_.total_steps), significant(last_loss_, 4), job_.describe(valid),
                            better ? ", the best so far" : "", tokens_per_second_ > 0 ? rate : ""));
  state_.evaluations_since_best = better ? 0 : state_.evaluations_since_best + 1;
  if (!better) return;
  state_.best = value;
  state_.best_loss = loss;
  state_.best_step = state_.step;
  std::map<std::string, std::string> metadata = job_.metadata();
  metadata["step"] = std::to_string(state_.step);
  metadata["cosformer.data"] = state_.data_name;
  save_weights(runs::best_weights_path(run_), job_.module(), metadata);
}

void Training::checkpoint() {
  settle();
  if (checkpointed_step_ == state_.step) return;
  count_seconds();
  state_.seconds = seconds_before_ + seconds_since(process_begin_);
  if (state_.step > first_step_) state_.rate = schedule_.at(state_.step);
  runs::save_checkpoint(run_, state_, content());
  checkpointed_step_ = state_.step;
  estimate_->add_checkpoint(seconds_since(counted_until_));
  checkpointed_at_ = counted_until_ = Clock::now();
}

bool Training::checkpoint_is_due(bool evaluates) const {
  const runs::TrainConfig& c = config_.train;
  if (c.checkpoint_minutes > 0 && seconds_since(checkpointed_at_) >= 60 * c.checkpoint_minutes) return true;
  return c.checkpoint_every > 0 ? state_.step % c.checkpoint_every == 0 : evaluates;
}

TrainResult Training::finish(Ending ending) {
  TrainResult result;
  result.parameters = job_.parameter_count();
  result.tokens_per_second = static_cast<double>(state_.tokens) / std::max(state_.training_seconds, 1e-9);
  if (observer_.peak_memory) result.peak_memory = observer_.peak_memory();
  if (ending != Ending::kInterrupted) {
    load_weights(runs::best_weights_path(run_), job_.module());
    try {
      result.valid = job_.evaluate(Part::kValid, InterruptScope::requested);
      if (job_.has_part(Part::kTest)) result.test = job_.evaluate(Part::kTest, InterruptScope::requested);
    } catch (const EvaluationStopped&) {
      ending = Ending::kInterrupted;  // the last checkpoint is there: going on begins with these evaluations
    }
  }
  if (observer_.peak_resident) result.peak_resident = observer_.peak_resident();
  result.ending = ending;
  state_.seconds = seconds_before_ + seconds_since(process_begin_);
  result.state = state_;
  if (ending == Ending::kInterrupted) return result;
  if (state_.step == first_step_ && !best_was_lost_) {  // nothing was trained: what was measured while it was is kept
    if (const std::optional<runs::ResultSummary> before = runs::read_result_summary(run_)) {
      if (before->peak_memory > 0) result.peak_memory = before->peak_memory;
      if (before->peak_resident > 0) result.peak_resident = before->peak_resident;
      observer_.say("this run had ended before; it was evaluated again, and its result.json is as it was");
      return result;
    }
  }
  write_result(run_, config_, job_.label(), result);
  return result;
}

// An evaluation that is interrupted stops at once; the checkpoint says that it is due, and going on begins with it.
Ending Training::steps(MetricsLog& metrics) {
  const auto out_of_patience = [this] {
    return config_.train.patience > 0 && state_.evaluations_since_best >= config_.train.patience;
  };
  if (!state_.evaluation_is_due && out_of_patience()) return Ending::kStoppedEarly;  // an ended run is asked to go on
  while (state_.step < state_.total_steps || state_.evaluation_is_due) {
    if (!state_.evaluation_is_due) {
      one_step(metrics);
      state_.evaluation_is_due = evaluates_now();
    }
    const bool last = state_.step == state_.total_steps, evaluates = state_.evaluation_is_due;
    if (evaluates) {
      settle();  // steps that a device is still at are no part of the evaluation
      count_seconds();
      try {
        evaluate_and_keep_best(metrics);
        state_.evaluation_is_due = false;
        estimate_->add_evaluation(seconds_since(counted_until_));
      } catch (const EvaluationStopped&) {
      }
      counted_until_ = Clock::now();
    }
    if (state_.evaluation_is_due) {
      checkpoint();
      return Ending::kInterrupted;
    }
    const bool ends = evaluates && !last && out_of_patience();
    if (last || ends || checkpoint_is_due(evaluates)) checkpoint();
    if (ends) return Ending::kStoppedEarly;
    if (!last && InterruptScope::requested()) {
      checkpoint();
      return Ending::kInterrupted;
    }
  }
  return Ending::kFinished;
}

// Finds how many steps there are and how the learning rate goes; where the run is to be continued, that begins here.
void Training::begin(bool continues) {
  const bool begins_again = continuation_is_due(config_, state_), other_data = state_.data_name != data_name_;
  if (begins_again) begin_continuation(config_, data_name_, state_);
  job_.begin(state_.position, step_.is_captured());
  const double steps_per_epoch =
      static_cast<double>(job_.batches_in_first_epoch()) / static_cast<double>(config_.train.accumulate);
  if (state_.total_steps == 0) {
    state_.total_steps = steps_in_all(config_.train, steps_per_epoch, begins_again && other_data ? state_.step : 0);
  }
  if (config_.train.steps > 0 && state_.total_steps != config_.train.steps) {
    throw UserError(
        fmt::format("the checkpoint of '{}' is of a training of {} steps, and config.toml says train.steps = {}; put "
                    "back what was there",
                    run_, with_commas(state_.total_steps), config_.train.steps));
  }
  if (continues) {
    require_steps_left(run_, state_);
    runs::write_settings(run_, config_);
  }
  if (begins_again) {
    std::filesystem::remove(runs::result_path(run_));  // it tells of an end that is none
    observer_.say(describe_continuation(state_, other_data));
  }
  schedule_ = schedule_of(config_.train, state_);
  estimate_.emplace(time_plan(config_.train, job_, state_.total_steps),
                    TimeEstimate::Counts{state_.step, state_.tokens, state_.training_seconds});
}

TrainResult Training::run(bool continues) {
  begin(continues);
  seconds_before_ = state_.seconds;
  first_step_ = state_.step;
  seconds_at_log_ = state_.training_seconds;
  tokens_at_log_ = state_.tokens;
  MetricsLog metrics(run_, state_.step);
  const InterruptScope interrupts;
  observer_.say(fmt::format("{}: {} parameters, {} steps on {}{}", job_.label(), with_commas(job_.parameter_count()),
                            with_commas(state_.total_steps), device_.str(),
                            bfloat16_ ? " in bfloat16" : " in float32"));
  counted_until_ = checkpointed_at_ = Clock::now();
  return finish(steps(metrics));
}

}  // namespace

TrainResult train(const TrainRequest& request, Job& job, const Observer& observer) {
  const runs::RunLock lock(request.run);
  runs::remove_unfinished(request.run);
  return Training(request, job, observer).run(request.continues);
}

}  // namespace cosformer::train
