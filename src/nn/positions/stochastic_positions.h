// Stochastic positional encoding (Liutkus et al. 2021), sine variant: positions for mechanisms that never form weights.
//
// Each dimension d of a head has a position kernel P_d(m, n) = Σ_s λ_s² cos(2π f_s (m − n) + φ_s), learned. Queries and
// keys are multiplied with random processes whose covariance it is: q̂_m = Σ_d q_md Q̄_d(m) and k̂_n = Σ_d k_nd K̄_d(n),
// in R realisations, so that q̂_m·k̂_n is on average Σ_d q_md k_nd P_d(m, n). Linear in length.
#pragma once

#include <cstdint>
#include <utility>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "nn/positions/stochastic_position_config.h"

namespace cosformer::nn {

class StochasticPositions : public torch::nn::Module {
 public:
  StochasticPositions(const StochasticPositionConfig& config, std::int64_t heads, std::int64_t dim);

  // q, k [B, T, H, D] → [B, T, H, R]. Every training forward draws anew; others use the last draw.
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& q, const at::Tensor& k);

  // P [H, D, T, T], the definition, for tests and pictures.
  at::Tensor kernel(std::int64_t time) const;

  at::Tensor frequency, phase, gain, gate;  // parameters, [H · D · sines] and gate [H · D]
  at::Tensor noise, gate_noise;             // buffers [H, D, 2 · sines, R], [H, D, 1, R]

 private:
  at::Tensor frequencies() const;  // [H, D, 1, sines], in turns per token
  at::Tensor powers() const;       // λ² [H, D, 1, sines], of sum 1

  StochasticPositionConfig config_;
  std::int64_t heads_, dim_;
};

}  // namespace cosformer::nn
