#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <filesystem>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/table.h"
#include "cosformer/weights.h"
#include "data/batch_stream.h"
#include "train/batching.h"
#include "train/interrupt.h"
#include "train/metrics_log.h"
#include "train/precision.h"
#include "train/schedule.h"
#include "train/training_step.h"

namespace cosformer::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::int64_t tokens_of(const data::Batch& batch) {
  std::int64_t count = 0;
  for (const std::int32_t length : batch.first.lengths) count += length;
  for (const std::int32_t length : batch.second.lengths) count += length;
  return count;
}

std::shared_ptr<models::Classifier> make_model(const RunConfig& config, const data::TaskData& task, at::Device device) {
  models::ModelConfig model = config.model;
  model.input = input_of(task);
  at::manual_seed(step_seed(config.train.seed, 0));
  auto result = std::make_shared<models::Classifier>(model);
  result->to(device);
  result->train();
  return result;
}

std::string percent(double share) {
  return significant(100 * share, 4) + "%";
}

class Training {
 public:
  Training(const TrainRequest& request, const data::TaskData& task, const Observer& observer)
      : run_(request.run),
        config_(request.config),
        task_(task),
        observer_(observer),
        device_(device_of(config_.train)),
        bfloat16_(uses_bfloat16(config_.train, device_)),
        model_(make_model(config_, task, device_)),
        parameters_(*model_),
        optimizer_(parameters_, config_.train),
        step_(*model_, optimizer_, parameters_, config_.train,
              {device_, bfloat16_, task.train->info().width, task.train->info().height}) {
    const std::vector<std::int64_t> steps = checkpoint_steps(run_);
    if (request.from || !steps.empty()) {
      state_ = load_checkpoint(run_, request.from ? *request.from : steps.back(), content());
      observer_.say("going on from step " + with_commas(state_.step));
    }
  }

  TrainResult run();

 private:
  CheckpointContent content() const {
    nn::NamedTensors weights;
    for (const auto& item : model_->named_parameters()) weights.emplace_back(item.key(), item.value());
    for (const auto& item : model_->named_buffers()) weights.emplace_back(item.key(), item.value());
    return {weights, optimizer_.state(), models::to_toml(model_->config())};
  }
  Evaluation evaluate_on(const data::DatasetPointer& part);
  void one_step(data::BatchStream& stream, MetricsLog& metrics);
  [[noreturn]] void not_finite(const std::string& what, std::int64_t step, const std::vector<std::uint32_t>& on) const;
  void settle();
  void log(MetricsLog& metrics);
  void evaluate_and_keep_best(MetricsLog& metrics);
  void checkpoint();
  TrainResult finish(Ending ending);

  struct Pending {
    at::Tensor loss;
    std::vector<std::uint32_t> examples;
  };

  std::string run_;
  RunConfig config_;
  const data::TaskData& task_;
  const Observer& observer_;
  at::Device device_;
  bool bfloat16_;
  std::shared_ptr<models::Classifier> model_;
  FlatParameters parameters_;
  AdamW optimizer_;
  TrainingStep step_;
  Schedule schedule_;
  TrainState state_;
  std::vector<Pending> pending_;  // losses that are still on the device
  double last_loss_ = std::nan("");
  double tokens_per_second_ = 0;
  bool epoch_ended_ = false;
  Clock::time_point process_begin_ = Clock::now(), log_begin_ = process_begin_;
  double seconds_before_ = 0;
  std::int64_t tokens_at_log_ = 0, checkpointed_step_ = -1;
};

Evaluation Training::evaluate_on(const data::DatasetPointer& part) {
  return evaluate(*model_, part, evaluation_options(config_.train, model_->config().input, device_));
}

// Ends the run with what happened, where, and what to try.
void Training::not_finite(const std::string& what, std::int64_t step, const std::vector<std::uint32_t>& on) const {
  std::string examples;
  for (const std::uint32_t example : on) examples += (examples.empty() ? "" : ", ") + std::to_string(example);
  const std::vector<std::int64_t> kept = checkpoint_steps(run_);
  throw Failure(what + " at step " + std::to_string(step) + ", on the training examples " + examples + ". " +
                (kept.empty() ? "There is no checkpoint yet. "
                              : "The checkpoint of step " + std::to_string(kept.back()) + " is intact. ") +
                "Try a smaller train.lr (now " + significant(config_.train.lr) +
                "), a longer warm-up (train.warmup_steps), train.clip=1" +
                (bfloat16_ ? ", or train.precision=fp32" : "") + "; and look at these examples");
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
      not_finite("the loss is " + std::to_string(loss), first_step + static_cast<std::int64_t>(at),
                 pending_[at].examples);
    }
    state_.pending_losses.push_back(loss);
    last_loss_ = loss;
  }
  pending_.clear();
}

void Training::one_step(data::BatchStream& stream, MetricsLog& metrics) {
  std::vector<DeviceBatch> on_device;
  Pending pending;
  for (std::int64_t part = 0; part < config_.train.accumulate; ++part) {
    std::optional<data::Batch> batch = stream.next();
    if (!batch) throw std::logic_error("the stream of training batches ended");
    on_device.push_back(step_.prepare(*batch));
    state_.position = batch->next;
    state_.tokens += tokens_of(*batch);
    epoch_ended_ = batch->next.epoch != batch->position.epoch;
    pending.examples.insert(pending.examples.end(), batch->examples.begin(), batch->examples.end());
  }
  const std::int64_t number = state_.step + 1;
  try {
    pending.loss = step_.run(number, schedule_.at(number), on_device);
  } catch (const c10::Error&) {
    settle();  // an earlier loss may tell more
    for (const FlatParameters::Group& group : parameters_.groups()) {
      if (!group.values.isfinite().all().item<bool>()) {
        not_finite("a weight is not finite", number, pending.examples);
      }
    }
    throw;
  }
  state_.step = number;
  pending_.push_back(std::move(pending));
  if (state_.step % config_.train.log_every == 0) log(metrics);
  observer_.step(state_, last_loss_, tokens_per_second_);
}

void Training::log(MetricsLog& metrics) {
  settle();
  double sum = 0;
  for (const double loss : state_.pending_losses) sum += loss;
  const double mean = sum / static_cast<double>(std::max<std::size_t>(state_.pending_losses.size(), 1));
  state_.pending_losses.clear();
  last_loss_ = mean;
  const double interval = seconds_since(log_begin_);
  tokens_per_second_ = static_cast<double>(state_.tokens - tokens_at_log_) / interval;
  state_.training_seconds += interval;
  state_.seconds = seconds_before_ + seconds_since(process_begin_);
  metrics.write(state_.step, {{"epoch", static_cast<double>(state_.position.epoch)},
                              {"loss", mean},
                              {"lr", schedule_.at(state_.step)},
                              {"tokens", static_cast<double>(state_.tokens)},
                              {"tokens_per_second", std::round(tokens_per_second_)},
                              {"seconds", std::round(1000 * state_.seconds) / 1000}});
  log_begin_ = Clock::now();
  tokens_at_log_ = state_.tokens;
}

void Training::evaluate_and_keep_best(MetricsLog& metrics) {
  settle();
  const auto begin = Clock::now();
  const Evaluation valid = evaluate_on(task_.valid);
  metrics.write(state_.step, {{"valid_loss", valid.loss}, {"valid_accuracy", valid.accuracy}});
  const bool better = valid.accuracy > state_.best_accuracy;
  observer_.say("step " + with_commas(state_.step) + " of " + with_commas(state_.total_steps) + ": loss " +
                significant(last_loss_, 4) + ", validation loss " + significant(valid.loss, 4) + ", accuracy " +
                percent(valid.accuracy) + (better ? ", the best so far" : "") + "  (" +
                with_commas(std::llround(tokens_per_second_)) + " tokens/s)");
  if (better) {
    state_.best_accuracy = valid.accuracy;
    state_.best_step = state_.step;
    state_.evaluations_since_best = 0;
    save_weights(best_weights_path(run_), *model_,
                 {{"cosformer.model", models::to_toml(model_->config())}, {"step", std::to_string(state_.step)}});
  } else {
    ++state_.evaluations_since_best;
  }
  log_begin_ += Clock::now() - begin;  // the rate of training is not that of evaluating
}

void Training::checkpoint() {
  settle();
  if (checkpointed_step_ == state_.step) return;
  state_.training_seconds += seconds_since(log_begin_);
  log_begin_ = Clock::now();
  const auto begin = Clock::now();
  state_.seconds = seconds_before_ + seconds_since(process_begin_);
  save_checkpoint(run_, state_, content());
  checkpointed_step_ = state_.step;
  log_begin_ += Clock::now() - begin;
}

TrainResult Training::finish(Ending ending) {
  TrainResult result;
  result.ending = ending;
  result.state = state_;
  result.parameters = model_->parameter_count();
  result.tokens_per_second = static_cast<double>(state_.tokens) / std::max(state_.training_seconds, 1e-9);
  if (observer_.peak_memory) result.peak_memory = observer_.peak_memory();
  if (ending == Ending::kInterrupted) return result;
  load_weights(best_weights_path(run_), *model_);
  result.valid = evaluate_on(task_.valid);
  result.test = evaluate_on(task_.test);
  const nlohmann::ordered_json json{
      {"attention", models::label_of(config_.model)},
      {"task", config_.data.task},
      {"parameters", result.parameters},
      {"steps", state_.step},
      {"best_step", state_.best_step},
      {"seconds", seconds_before_ + seconds_since(process_begin_)},
      {"tokens", state_.tokens},
      {"tokens_per_second", result.tokens_per_second},
      {"steps_per_second", static_cast<double>(state_.step) / std::max(state_.training_seconds, 1e-9)},
      {"peak_memory", result.peak_memory},
      {"valid_loss", result.valid.loss},
      {"valid_accuracy", result.valid.accuracy},
      {"test_loss", result.test.loss},
      {"test_accuracy", result.test.accuracy},
      {"test_examples", result.test.examples},
      {"test_batches_per_second", static_cast<double>(result.test.batches) / std::max(result.test.seconds, 1e-9)},
  };
  const std::string text = json.dump(1) + '\n';
  AtomicFile file((std::filesystem::path(run_) / "result.json").string());
  file.write(text.data(), text.size());
  file.commit();
  return result;
}

TrainResult Training::run() {
  data::BatchStream stream(task_.train, batch_options(config_.train, model_->config().input),
                           static_cast<std::uint64_t>(config_.train.seed), state_.position);
  if (state_.total_steps == 0) {
    const double an_epoch =
        static_cast<double>(stream.batches_in_first_epoch()) / static_cast<double>(config_.train.accumulate);
    state_.total_steps = config_.train.steps > 0
                             ? config_.train.steps
                             : std::max<std::int64_t>(1, std::llround(std::ceil(an_epoch * config_.train.epochs)));
  }
  schedule_ = {config_.train.schedule, config_.train.lr, config_.train.final_lr,
               config_.train.warmup_steps > 0
                   ? config_.train.warmup_steps
                   : std::llround(config_.train.warmup_fraction * static_cast<double>(state_.total_steps)),
               state_.total_steps};
  seconds_before_ = state_.seconds;
  tokens_at_log_ = state_.tokens;
  MetricsLog metrics(run_, state_.step);
  const InterruptScope interrupts;
  Ending ending = Ending::kFinished;
  observer_.say(models::label_of(config_.model) + ": " + with_commas(model_->parameter_count()) + " parameters, " +
                with_commas(state_.total_steps) + " steps on " + device_.str() +
                (bfloat16_ ? " in bfloat16" : " in float32"));
  log_begin_ = Clock::now();
  const auto out_of_patience = [this] {
    return config_.train.patience > 0 && state_.evaluations_since_best >= config_.train.patience;
  };
  if (out_of_patience()) ending = Ending::kStoppedEarly;  // a run that had ended is asked to go on
  while (state_.step < state_.total_steps && ending == Ending::kFinished) {
    one_step(stream, metrics);
    const bool last = state_.step == state_.total_steps;
    const std::int64_t eval_every = config_.train.eval_every, checkpoint_every = config_.train.checkpoint_every;
    const bool evaluates = last || (eval_every > 0 ? state_.step % eval_every == 0 : epoch_ended_);
    if (evaluates) evaluate_and_keep_best(metrics);
    if (evaluates && !last && out_of_patience()) ending = Ending::kStoppedEarly;
    if (last || ending != Ending::kFinished || (checkpoint_every > 0 ? state_.step % checkpoint_every == 0 : evaluates))
      checkpoint();
    if (!last && ending == Ending::kFinished && InterruptScope::requested()) {
      checkpoint();
      ending = Ending::kInterrupted;
    }
  }
  return finish(ending);
}

}  // namespace

TrainResult train(const TrainRequest& request, const data::TaskData& task, const Observer& observer) {
  const RunLock lock(request.run);
  return Training(request, task, observer).run();
}

}  // namespace cosformer::train
