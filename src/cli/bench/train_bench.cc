#include "cli/bench/train_bench.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <torch/cuda.h>

#include "base/table.h"
#include "cli/memory/allocation_peak.h"
#include "models/layer_pattern.h"
#include "nn/mechanisms/attention_traits.h"
#include "ops/torch_compat.h"
#include "runs/device.h"
#include "train/inputs/device_batch.h"
#include "train/training_step.h"

namespace cosformer::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kVocabulary = 256, kClasses = 10;
constexpr double kLearningRate = 1e-3;
// Enough for libraries to choose their algorithms and, on a GPU, for the step to be captured; their losses are kept.
constexpr int kWarmUps = 5;

models::ModelConfig model_config(const TrainCase& c) {
  models::ModelConfig config;
  Settings settings;
  models::add_settings(settings, config, false);
  if (c.pattern.empty()) {
    settings.set("model.attention", c.attention, "--attention");
  } else {
    settings.set("model.pattern", c.pattern, "--pattern");
  }
  for (const std::string& assignment : c.assignments) settings.assign(assignment);
  config.causal = c.causal;  // the preset depends on it
  models::apply_preset(config, settings);
  config.input.vocabulary = kVocabulary;
  config.input.max_length = c.length;
  for (std::int64_t at = 0; at < kClasses; ++at) config.input.classes.push_back(std::to_string(at));
  config.width = c.width;
  config.layers = c.layers;
  config.heads = c.heads;
  config.feed_forward = c.feed_forward;
  config.dropout = c.dropout;
  return config;
}

train::DeviceBatch random_batch(const TrainCase& c) {
  const at::Device device(c.device);
  train::DeviceBatch batch;
  batch.first.content = at::randint(kVocabulary, {c.batch, c.length}, at::kInt).to(device);
  batch.labels = at::randint(kClasses, {c.batch}, at::kLong).to(device);
  return batch;
}

void write_exchange(const std::string& path, const models::Classifier& model, const train::DeviceBatch& batch) {
  nn::NamedTensors tensors{{"batch.tokens", batch.first.content}, {"batch.labels", batch.labels}};
  for (const auto& item : model.named_parameters()) tensors.emplace_back(item.key(), item.value());
  nn::write_tensors(path, tensors);
}

// A field of a file like /proc/meminfo, in bytes; 0 when it is not there.
double kilobytes_field(const char* path, const std::string& field) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stod(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

// How far the process' resident memory rises above where it was. The kernel keeps the highest value, and forgets it
// when asked to.
class ResidentPeak {
 public:
  ResidentPeak() {
    std::ofstream("/proc/self/clear_refs") << "5";
    before_ = kilobytes_field("/proc/self/status", "VmRSS");
  }
  double bytes() const { return std::max(0.0, kilobytes_field("/proc/self/status", "VmHWM") - before_); }

 private:
  double before_ = 0;
};

// What cannot be causal, and steps that would not end or not fit, are not started: softmax without a fused kernel and
// synthesizer form N×N matrices, one_vs_each also compares N³ pairs of keys.
std::string why_skip(const TrainCase& c, const TrainEffort& effort) {
  double in_squares = 0, in_cubes = 0, synthesizers = 0;  // layers
  for (const nn::AttentionConfig& attention : models::layer_attentions(model_config(c))) {
    const std::string& no_causal = nn::traits_of(attention.name).no_causal;
    if (c.causal && !no_causal.empty()) return "cannot be causal: " + no_causal;
    if (attention.name == "one_vs_each") ++in_cubes;
    if (attention.name == "synthesizer") ++synthesizers;
    if (attention.name == "softmax") ++in_squares;
  }
  const bool needs_matrices = !ops::kHasFusedSoftmax || in_cubes + synthesizers > 0;
  in_squares += in_cubes + synthesizers;
  if (in_squares == 0 || c.device != "cpu") return "";
  const double scores = static_cast<double>(c.batch * c.heads) * static_cast<double>(c.length * c.length);
  const double flops = 12 * scores * static_cast<double>(c.width / c.heads) * in_squares;
  const double comparisons = 2 * scores * static_cast<double>(c.length) * in_cubes;
  const double seconds = flops / (20e9 * c.threads) + comparisons / (2e8 * c.threads);
  if (seconds > effort.most_seconds) return fmt::format("would take about {} s a step", significant(seconds, 2));
  if (needs_matrices) {
    const double bytes = scores * 4 * ((c.causal ? 3 : 2) * in_squares + 2);
    const double available = available_memory();
    if (available > 0 && bytes > 0.8 * available) {
      return fmt::format("needs {} for its N×N matrices, {} are there", human_bytes(bytes), human_bytes(available));
    }
  }
  return "";
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// A model and everything that its steps need.
class Training {
 public:
  explicit Training(const TrainCase& c)
      : model(seeded_model(c)), batch(random_batch(c)), on_gpu_(c.device == "cuda"), bfloat16_(c.bfloat16) {
    model->to(at::Device(c.device));
    model->train();
    train::StepOptions options;
    options.device = at::Device(c.device);
    options.bfloat16 = c.bfloat16;
    options.is_always_the_same = !models::changes_while_training(model->config());
    parameters_ = std::make_unique<train::FlatParameters>(*model);
    optimizer_ = std::make_unique<train::AdamW>(*parameters_, config_);
    step_ = std::make_unique<train::TrainingStep>(
        [this](const train::StepInputs& inputs) {
          return train::classification_loss(*model, std::get<train::DeviceBatch>(inputs), config_.label_smoothing);
        },
        *optimizer_, *parameters_, config_, options);
  }

  at::Tensor step() { return step_->run(++steps_, kLearningRate, {batch}); }

  // The time of one of `together` steps.
  double milliseconds(int together) {
    wait();
    const auto start = Clock::now();
    for (int at = 0; at < together; ++at) step();
    wait();
    return milliseconds_since(start) / together;
  }

  double inference_milliseconds(int together) {
    const at::NoGradGuard no_grad;
    const runs::AutocastScope autocast(batch.first.content.device(), bfloat16_);
    wait();
    const auto start = Clock::now();
    for (int at = 0; at < together; ++at) train::logits_of(*model, batch);
    wait();
    return milliseconds_since(start) / together;
  }

  std::shared_ptr<models::Classifier> model;
  train::DeviceBatch batch;

 private:
  // The same numbers for every mechanism that has the same parameters.
  static std::shared_ptr<models::Classifier> seeded_model(const TrainCase& c) {
    at::manual_seed(1);
    return std::make_shared<models::Classifier>(model_config(c));
  }
  void wait() const {
    if (on_gpu_) torch::cuda::synchronize();
  }

  bool on_gpu_, bfloat16_;
  runs::TrainConfig config_;
  std::unique_ptr<train::FlatParameters> parameters_;
  std::unique_ptr<train::AdamW> optimizer_;
  std::unique_ptr<train::TrainingStep> step_;
  std::int64_t steps_ = 0;
};

// `milliseconds` of so many steps together, until the time for repeating is over.
template <typename Measure>
Timing repeated(const TrainCase& c, const TrainEffort& effort, const Measure& milliseconds) {
  const double first = milliseconds(1);
  const int together = c.device == "cuda" ? std::clamp(static_cast<int>(20.0 / first), 1, 50) : 1;
  const int repeats = std::clamp(static_cast<int>(effort.seconds * 1e3 / (first * together)), 3, 500);
  std::vector<double> times(static_cast<std::size_t>(repeats));
  for (double& time : times) time = milliseconds(together);
  return timing_of(times);
}

}  // namespace

std::string name_of(const TrainCase& c) {
  return c.pattern.empty() ? c.attention : models::label_of(model_config(c));
}

double available_memory() {
  return kilobytes_field("/proc/meminfo", "MemAvailable");
}

TrainMeasurement measure_training(const TrainCase& c, const TrainEffort& effort, const std::string& exchange) {
  TrainMeasurement result;
  result.skipped = why_skip(c, effort);
  if (!result.skipped.empty()) return result;
  at::set_num_threads(c.threads);
  const AllocationPeak peak{at::Device(c.device)};
  const ResidentPeak resident;
  Training training(c);
  result.parameters = training.model->parameter_count();
  if (!exchange.empty()) write_exchange(exchange, *training.model, training.batch);
  const auto start = Clock::now();
  for (int at = 0; at < kWarmUps; ++at) {
    result.losses.push_back(training.step().item<double>());
    const bool long_steps = c.device == "cpu" && exchange.empty() && milliseconds_since(start) > effort.seconds * 1e3;
    if (milliseconds_since(start) > effort.most_seconds * 1e3 * (at + 1)) {
      result.skipped = fmt::format("a step takes {} s", significant(milliseconds_since(start) * 1e-3 / (at + 1), 2));
      return result;
    }
    if (long_steps && at > 0) break;
  }
  result.step = repeated(c, effort, [&](int together) { return training.milliseconds(together); });
  result.tokens_per_s = static_cast<double>(c.batch * c.length) / (result.step.median_ms * 1e-3);
  result.peak_bytes = peak.bytes();
  if (c.device == "cpu") result.resident_bytes = resident.bytes();
  training.model->eval();
  training.inference_milliseconds(1);
  result.inference = repeated(c, effort, [&](int together) { return training.inference_milliseconds(together); });
  return result;
}

}  // namespace cosformer::cli
