#include "nn/positions/stochastic_positions.h"

#include <cmath>
#include <numbers>

#include <ATen/ATen.h>

#include "nn/full_precision.h"

namespace cosformer::nn {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;
// Frequencies start low, most within a hundredth of a turn per token: kernels that see far.
constexpr double kFirstFrequencyLogit = -4;

}  // namespace

StochasticPositions::StochasticPositions(const StochasticPositionConfig& config, std::int64_t heads, std::int64_t dim)
    : config_(config), heads_(heads), dim_(dim) {
  // One-dimensional, as everything that weight decay must not pull to zero.
  const std::int64_t count = heads * dim * config.sines;
  frequency = register_parameter("frequency", at::randn({count}) + kFirstFrequencyLogit);
  phase = register_parameter("phase", at::zeros({count}));
  gain = register_parameter("gain", at::randn({count}));
  noise = register_buffer("noise", at::randn({heads, dim, 2 * config.sines, config.realizations}));
  if (config.gated) {
    gate = register_parameter("gate", at::zeros({heads * dim}));
    gate_noise = register_buffer("gate_noise", at::randn({heads, dim, 1, config.realizations}));
  }
}

at::Tensor StochasticPositions::frequencies() const {
  return frequency.view({heads_, dim_, 1, config_.sines}).sigmoid() * 0.5;
}

at::Tensor StochasticPositions::powers() const {
  return gain.view({heads_, dim_, 1, config_.sines}).softmax(-1);
}

at::Tensor StochasticPositions::kernel(std::int64_t time) const {
  const at::Tensor places = at::arange(time, frequency.options());
  const at::Tensor distance = (places.unsqueeze(1) - places.unsqueeze(0)).view({1, 1, time * time, 1});
  const at::Tensor offsets = phase.view({heads_, dim_, 1, config_.sines});
  const at::Tensor sum = (powers() * (kTurn * frequencies() * distance + offsets).cos()).sum(-1);
  const at::Tensor p = sum.view({heads_, dim_, time, time});
  if (!gate.defined()) return p;
  const at::Tensor share = gate.sigmoid().view({heads_, dim_, 1, 1});
  return share * p + (1 - share);
}

std::pair<at::Tensor, at::Tensor> StochasticPositions::forward(const at::Tensor& q, const at::Tensor& k) {
  if (is_training()) {
    at::NoGradGuard no_grad;
    noise.normal_();
    if (gate_noise.defined()) gate_noise.normal_();
  }
  const FullPrecision full_precision;
  const at::Tensor drawn = noise.clone();  // another forward may draw before this one's backward
  const at::Tensor amplitude = powers().sqrt(), offsets = phase.view({heads_, dim_, 1, config_.sines});
  // The process of a side at its places: [H, D, T, R]
  const auto process = [&](std::int64_t time, bool with_phase) {
    const at::Tensor places = at::arange(time, frequency.options()).view({1, 1, time, 1});
    at::Tensor angle = kTurn * frequencies() * places;
    if (with_phase) angle = angle + offsets;
    at::Tensor sum = at::matmul(at::cat({amplitude * angle.cos(), amplitude * angle.sin()}, -1), drawn);
    if (gate.defined()) {
      const at::Tensor share = gate.sigmoid().view({heads_, dim_, 1, 1});
      sum = share.sqrt() * sum + (1 - share).sqrt() * gate_noise.clone();
    }
    return sum / std::sqrt(static_cast<double>(config_.realizations));
  };
  const auto modulated = [&](const at::Tensor& x, const at::Tensor& p) {
    const at::Tensor wide = at_least_float(x).permute({1, 2, 0, 3});                          // [T, H, B, D]
    const at::Tensor sum = at::matmul(wide, p.permute({2, 0, 1, 3}).to(wide.scalar_type()));  // [T, H, B, R]
    return sum.permute({2, 0, 1, 3}).contiguous().to(x.scalar_type());
  };
  return {modulated(q, process(q.size(1), true)), modulated(k, process(k.size(1), false))};
}

}  // namespace cosformer::nn
