#include "cli/lm_decode_bench.h"

#include <algorithm>
#include <chrono>

#include <torch/torch.h>

#include "base/table.h"
#include "models/language_model.h"
#include "nn/attention_traits.h"

namespace cosformer::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long long kMostNewTokens = 4096, kLeastNewTokens = 16, kWarmUp = 4;
constexpr std::int64_t kStretch = 2048;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

models::LanguageModelConfig config_of(const LmDecodeCase& c) {
  models::LanguageModelConfig config;
  models::ModelConfig& m = config.model;
  m.input.vocabulary = c.vocabulary;
  m.input.max_length = c.context + kMostNewTokens;
  m.causal = true;
  m.attention = nn::preset_of(c.attention, true);
  m.layers = c.layers;
  m.width = c.width;
  m.heads = c.heads;
  m.feed_forward = 4 * c.width;
  m.positions = c.attention == "softmax" ? "rotary" : "none";
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
      if (c.attention != "softmax") {
        tensor.uniform_();
        continue;
      }
      std::vector<std::int64_t> shape = tensor.sizes().vec();
      shape[2] = c.context + kMostNewTokens;  // room for what follows, so that nothing is copied in between
      tensor = at::empty(shape, tensor.options()).normal_();
    }
    if (c.attention == "softmax") m.length = c.context;
  }
}

void wait_for(at::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize();
}

// Of a cache of keys and values; nothing to speak of where the state does not grow.
double expected_gigabytes(const LmDecodeCase& c) {
  if (c.attention != "softmax") return 0;
  return 2.0 * sizeof(float) * static_cast<double>(c.layers * c.width * c.batch * (c.context + kMostNewTokens)) / 1e9;
}

}  // namespace

LmDecodeResult measure_lm_decode(const LmDecodeCase& c) {
  LmDecodeResult result;
  if (const double needed = expected_gigabytes(c); needed > c.most_gigabytes) {
    result.skipped = "its cache would take " + significant(needed, 3) + " GB, more than --most-gigabytes " +
                     significant(c.most_gigabytes, 3);
    return result;
  }
  at::NoGradGuard no_grad;
  torch::manual_seed(1);
  const at::Device device(c.device);
  models::LanguageModel model(config_of(c));
  model.to(device);
  model.eval();
  result.parameters = model.parameter_count();
  models::LmState state = model.empty_state(c.batch);
  if (c.consume) {
    const auto start = Clock::now();
    for (std::int64_t read = 0; read < c.context; read += kStretch) {
      const std::int64_t count = std::min<std::int64_t>(kStretch, c.context - read);
      model.stream_hidden(at::randint(c.vocabulary, {c.batch, count}, at::kLong).to(device), state);
    }
    wait_for(device);
    result.prompt_seconds = seconds_since(start);
  } else {
    fill(state, c, device);
  }
  at::Tensor token = at::randint(c.vocabulary, {c.batch, 1}, at::kLong).to(device);
  const auto step = [&] {
    token = model.stream(token, state).argmax(-1);
    wait_for(device);
  };
  for (long long at = 0; at < kWarmUp; ++at) step();
  std::vector<double> times;
  const auto start = Clock::now();
  while (static_cast<long long>(times.size()) < kMostNewTokens - kWarmUp &&
         (static_cast<long long>(times.size()) < kLeastNewTokens || seconds_since(start) < c.seconds)) {
    const auto begin = Clock::now();
    step();
    times.push_back(1e3 * seconds_since(begin));
  }
  result.tokens = static_cast<long long>(times.size());
  result.token = timing_of(std::move(times));
  result.state_bytes = state.bytes();
  return result;
}

}  // namespace cosformer::cli
