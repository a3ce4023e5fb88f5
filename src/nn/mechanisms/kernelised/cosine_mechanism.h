// The mechanisms that run on our operator: cosformer, cosformer_plus and linear (θ = 0).
#pragma once

#include "cosformer/attention.h"
#include "nn/mechanisms/mechanism.h"

namespace cosformer::nn {

class CosineMechanism : public Mechanism {
 public:
  CosineMechanism(const AttentionConfig& config, const AttentionShape& shape);
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;
  at::Tensor forward_packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const Packing& packing) override;
  MechanismState empty_state(std::int64_t batch, const at::TensorOptions& like) const override;
  at::Tensor forward_stream(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, MechanismState& state,
                            const StreamClock& clock) override;
  std::optional<std::int64_t> longest_stream() const override;
  at::Tensor forward_cross(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& key_mask) override;
  // Sums over keys of features times values and of features: [B, H, F, D] and [B, H, F], whatever the number of keys.
  MechanismState cross_memory(const at::Tensor& k, const at::Tensor& v, const at::Tensor& key_mask) const override;
  at::Tensor recall(const at::Tensor& q, const MechanismState& memory, const StreamClock& clock) override;

  // ln γ of each head, ≤ 0; undefined without a decay.
  at::Tensor log_decay() const;

  // The angle of each head where it is learned.
  at::Tensor learned_theta() const;

  at::Tensor log_rate;  // [H], a parameter: γ = exp(−exp(log_rate)), so that it stays in (0, 1)
  at::Tensor theta;     // [H], a buffer, with spread angles
  // [H], a parameter: with a division by the sum the logit of θ's share of π/2M, so that no weight turns negative;
  // otherwise θ as a multiple of its first value.
  at::Tensor angle;

 protected:
  StreamOptions stream_options() const;
  at::Tensor features(const at::Tensor& x) const;  // feature_map of it, in float32 at least

  AttentionConfig config_;
  AttentionShape shape_;

 private:
  // The angle of each head, [H], whoever decides it; float64.
  at::Tensor head_angles() const;
  // Where the operator's own angles do not serve: x as features that include theirs, at positions [T] or [B, T].
  at::Tensor turned_features(const at::Tensor& x, const at::Tensor& positions) const;
  // The same, but in float32 at least, and without angles where nothing is re-weighted.
  at::Tensor full_features(const at::Tensor& x, const at::Tensor& positions) const;
  AttentionOptions options() const;

  bool divides_;
};

// feature_map "softmax": exp(q_i·k_j/√d) cos(θ(i − j)), divided by its sum. Quadratic; what the method's similarity is
// compared with.
class CosineSoftmaxMechanism : public Mechanism {
 public:
  CosineSoftmaxMechanism(const AttentionConfig& config, const AttentionShape& shape);
  at::Tensor forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& key_mask) override;

 private:
  AttentionConfig config_;
  AttentionShape shape_;
};

}  // namespace cosformer::nn
