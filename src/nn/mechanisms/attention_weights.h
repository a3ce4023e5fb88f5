// The weights with which a mechanism sums values, exactly as it sums them: its own forward pass is asked, not a
// formula.
//
// A mechanism's output is linear in the values, so values that are columns of the identity make it say its weights, a
// head's dimension of them at a time. That costs T / D passes and T² numbers: for looking, not for training.
#pragma once

#include <functional>

#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

// Called as columns of the weights have come: so many of so many.
using WeightsProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// x [B, T, width] (undefined for mechanisms that do not read it), q, k [B, T, H, D], key_mask [B, T] or undefined
// → [B, H, T, T]: what out_i takes of v_j. Whatever the mechanism draws at random is drawn alike in every pass.
at::Tensor attention_weights(Mechanism& mechanism, const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                             std::int64_t value_dim, const at::Tensor& key_mask, const WeightsProgress& progress = {});

// Stands in a mechanism's place and keeps the weights of the first forward pass that comes through.
class WeightRecorder : public Mechanism {
 public:
  explicit WeightRecorder(std::shared_ptr<Mechanism> mechanism, WeightsProgress progress = {})
      : mechanism_(std::move(mechanism)), progress_(std::move(progress)) {}
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;
  at::Tensor forward_with_input(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const at::Tensor& key_mask) override;

  const at::Tensor& weights() const { return weights_; }  // [B, H, T, T]; undefined before the first pass
  // How far the weights times the values are from the output, at most, beside the output's greatest value.
  double deviation() const { return deviation_; }

 private:
  std::shared_ptr<Mechanism> mechanism_;
  WeightsProgress progress_;
  at::Tensor weights_;
  double deviation_ = 0;
};

// What people say about a head: weights [T, T].
struct WeightSummary {
  double negative_share = 0;  // of the weights that are not zero, how many are below it
  double mean_distance = 0;   // in tokens, weighted by the size of the weights, mean over queries
  double near_share = 0;      // of a query's weights by size, what lies within `near` tokens; mean over queries
  double entropy = 0;         // of a query's weights by size, in nats; mean over queries
};
WeightSummary summarize_weights(const at::Tensor& weights, std::int64_t near = 16);

}  // namespace cosformer::nn
