#include "cli/bench/lm_decode_bench.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/core.h>
#include <torch/torch.h>

#include "base/table.h"
#include "models/language/language_model.h"
#include "models/layer_pattern.h"
#include "nn/mechanisms/attention_traits.h"
#include "ops/plain_errors.h"

namespace cosformer::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long long kTurn = 8, kNewTokens = kTurn + 1, kLeastMeasured = 16;
constexpr std::int64_t kStretch = 2048;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::int64_t softmax_layers(const models::ModelConfig& m) {
  const std::vector<nn::AttentionConfig> layers = models::layer_attentions(m);
  return std::count_if(layers.begin(), layers.end(), [](const auto& a) { return a.name == "softmax"; });
}

models::LanguageModelConfig config_of(const LmDecodeCase& c) {
  models::LanguageModelConfig config;
  models::ModelConfig& m = config.model;
  m.input.vocabulary = c.vocabulary;
  m.input.max_length = c.context + kNewTokens;
  m.causal = true;
  Settings settings;
  models::add_settings(settings, m, false);
  if (c.pattern.empty()) {
    settings.set("model.attention", c.attention, "--attention");
  } else {
    settings.set("model.pattern", c.pattern, "--pattern");
  }
  models::apply_preset(m, settings);
  m.layers = c.layers;
  m.width = c.width;
  m.heads = c.heads;
  m.feed_forward = 4 * c.width;
  m.positions = softmax_layers(m) > 0 ? "rotary" : "none";
  m.dropout = 0;
  return config;
}

// As after `context` tokens. What the numbers are has no bearing on the time that a token takes.
void fill(models::LmState& state, const LmDecodeCase& c, at::Device device) {
  state.clock = nn::StreamClock(c.batch, device, c.context);
  for (nn::LayerState& layer : state.layers) {
    nn::MechanismState& m = layer.mechanism;
    if (layer.convolution.defined()) layer.convolution.normal_();
    for (at::Tensor& tensor : m.tensors) {
      if (!models::LmState::is_cache(tensor)) {
        tensor.uniform_();
        continue;
      }
      std::vector<std::int64_t> shape = tensor.sizes().vec();
      shape[2] = c.context + kNewTokens;  // room for what follows, so that nothing is copied in between
      tensor = at::empty(shape, tensor.options()).normal_();
      m.length = c.context;
    }
  }
}

void wait_for(at::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize();
}

at::ScalarType type_of(const LmDecodeCase& c) {
  return c.dtype == "bfloat16" ? at::kBFloat16 : at::kFloat;
}

// Of a cache of keys and values; nothing to speak of where the state does not grow.
double expected_gigabytes(const LmDecodeCase& c) {
  const std::int64_t layers = softmax_layers(config_of(c).model);
  return 2.0 * static_cast<double>(at::elementSize(type_of(c))) *
         static_cast<double>(layers * c.width * c.batch * (c.context + kNewTokens)) / 1e9;
}

// Bytes a millisecond that a copy reads and writes, of a size that no cache holds.
double copy_speed(at::Device device) {
  constexpr std::int64_t kBytes = 1LL << 28;
  const at::Tensor from = at::ones({kBytes / 4}, at::TensorOptions().device(device)), to = at::empty_like(from);
  std::vector<double> times;
  for (int at = 0; at < 8; ++at) {
    wait_for(device);
    const auto begin = Clock::now();
    to.copy_(from);
    wait_for(device);
    if (at > 0) times.push_back(1e3 * seconds_since(begin));
  }
  return 2.0 * static_cast<double>(kBytes) / timing_of(std::move(times)).median_ms;
}

// What a new token cannot do without: every weight is read, a carried state is read and written, a cache is read.
double least_bytes(const models::LanguageModel& model, const models::LmState& state) {
  double bytes = 0;
  for (const at::Tensor& p : model.parameters()) bytes += static_cast<double>(p.nbytes());
  double cached = 0;
  for (const nn::LayerState& layer : state.layers) {
    if (layer.mechanism.length == 0) continue;
    for (const at::Tensor& tensor : layer.mechanism.tensors) {
      cached += static_cast<double>(tensor.narrow(2, 0, layer.mechanism.length).numel() * tensor.element_size());
    }
  }
  return bytes + 2.0 * static_cast<double>(state.bytes()) - cached;
}

// One context: its state, and how long its new tokens took.
class Decoding {
 public:
  Decoding(models::LanguageModel& model, const LmDecodeCase& c) : model_(model), device_(c.device) {
    result.parameters = model.parameter_count();
    context_ = model.empty_state(c.batch);
    if (c.consume) {
      consume(c);
    } else {
      fill(context_, c, device_);
    }
    token_ = at::randint(c.vocabulary, {c.batch, 1}, at::kLong).to(device_);
    take_turn();
    times_.clear();
  }

  // A few tokens after the context, always the same one.
  void take_turn() {
    models::LmState state = context_;
    step(state);  // brings back what the others have driven out of the caches
    for (long long at = 0; at < kTurn; ++at) {
      const auto begin = Clock::now();
      step(state);
      times_.push_back(1e3 * seconds_since(begin));
    }
  }

  bool has_enough() const { return static_cast<long long>(times_.size()) >= kLeastMeasured; }

  // `speed`: of a copy, in bytes a millisecond.
  LmDecodeResult finish(const LmDecodeCase& c, double speed) {
    result.limit_ms = least_bytes(model_, context_) / speed;
    result.tokens = static_cast<long long>(times_.size());
    result.token = timing_of(std::move(times_));
    result.state_bytes = context_.bytes();
    return result;
  }

  LmDecodeResult result;

 private:
  void step(models::LmState& state) {
    token_ = model_.stream(token_, state).argmax(-1);
    wait_for(device_);
  }

  void consume(const LmDecodeCase& c) {
    const auto start = Clock::now();
    for (std::int64_t read = 0; read < c.context; read += kStretch) {
      const std::int64_t count = std::min<std::int64_t>(kStretch, c.context - read);
      model_.stream_hidden(at::randint(c.vocabulary, {c.batch, count}, at::kLong).to(device_), context_);
    }
    wait_for(device_);
    result.prompt_seconds = seconds_since(start);
  }

  models::LanguageModel& model_;
  at::Device device_;
  models::LmState context_;
  at::Tensor token_;
  std::vector<double> times_;
};

}  // namespace

std::string name_of(const LmDecodeCase& c) {
  if (c.pattern.empty()) return c.attention;
  const models::LanguageModelConfig config = config_of(c);
  models::require_possible(config);
  return models::label_of(config.model);
}

std::vector<LmDecodeResult> measure_lm_decode(const std::vector<LmDecodeCase>& cases) {
  at::NoGradGuard no_grad;
  torch::manual_seed(1);
  const auto by_context = [](const LmDecodeCase& a, const LmDecodeCase& b) { return a.context < b.context; };
  const LmDecodeCase& longest = *std::max_element(cases.begin(), cases.end(), by_context);
  models::LanguageModel model(config_of(longest));
  const at::Device device(longest.device);
  model.to(device, type_of(longest));
  model.eval();
  const double speed = copy_speed(device);

  std::vector<LmDecodeResult> results(cases.size());
  std::vector<std::unique_ptr<Decoding>> decodings(cases.size());
  double gigabytes = 0;
  for (std::size_t at = 0; at < cases.size(); ++at) {
    const double needed = expected_gigabytes(cases[at]);
    if (gigabytes + needed > cases[at].most_gigabytes) {
      results[at].skipped = fmt::format("its cache would take {} GB, more than --most-gigabytes {} leave",
                                        significant(needed, 3), significant(cases[at].most_gigabytes, 3));
      continue;
    }
    try {
      decodings[at] = std::make_unique<Decoding>(model, cases[at]);
      gigabytes += needed;
    } catch (const std::exception& error) {  // too little memory for one context leaves the others be
      results[at].skipped = ops::first_line_of(error);
    }
  }
  const auto start = Clock::now();
  const double seconds = longest.seconds * static_cast<double>(cases.size());
  bool goes_on = true;
  while (goes_on) {
    goes_on = false;
    for (const auto& decoding : decodings) {
      if (!decoding || (decoding->has_enough() && seconds_since(start) >= seconds)) continue;
      decoding->take_turn();
      goes_on = true;
    }
  }
  for (std::size_t at = 0; at < cases.size(); ++at) {
    if (decodings[at]) results[at] = decodings[at]->finish(cases[at], speed);
  }
  return results;
}

}  // namespace cosformer::cli
