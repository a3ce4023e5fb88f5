#include "nn/mechanisms/mechanism.h"

#include "base/error.h"
#include "nn/mechanisms/kernelised/cosine_mechanism.h"
#include "nn/mechanisms/kernelised/performer_mechanism.h"
#include "nn/mechanisms/kernelised/rfa_mechanism.h"
#include "nn/mechanisms/kernelised/token_decay_mechanism.h"
#include "nn/mechanisms/low_rank/linformer_mechanism.h"
#include "nn/mechanisms/low_rank/nystromformer_mechanism.h"
#include "nn/mechanisms/low_rank/synthesizer_mechanism.h"
#include "nn/mechanisms/softmax/one_vs_each_mechanism.h"
#include "nn/mechanisms/softmax/softmax_mechanism.h"
#include "nn/mechanisms/sparse/bigbird_mechanism.h"
#include "nn/mechanisms/sparse/local_mechanism.h"
#include "nn/mechanisms/sparse/longformer_mechanism.h"
#include "nn/mechanisms/sparse/reformer_mechanism.h"
#include "nn/mechanisms/sparse/sinkhorn_mechanism.h"
#include "nn/mechanisms/sparse/sparse_mechanism.h"

namespace cosformer::nn {
namespace {

UserError cannot_stream() {
  return UserError(
      "this model's attention cannot carry a state from one stretch of a text to the next; those that can: cosformer, "
      "cosformer_plus and linear (but with feature_map=softmax), performer and softmax");
}

}  // namespace

at::Tensor Mechanism::forward_packed(const at::Tensor&, const at::Tensor&, const at::Tensor&, const Packing&) {
  throw UserError(
      "this model's attention cannot keep packed documents apart; those that can: cosformer, cosformer_plus and linear "
      "(but with feature_map=softmax) and softmax");
}

MechanismState Mechanism::empty_state(std::int64_t, const at::TensorOptions&) const {
  throw cannot_stream();
}

at::Tensor Mechanism::forward_stream(const at::Tensor&, const at::Tensor&, const at::Tensor&, MechanismState&,
                                     const StreamClock&) {
  throw cannot_stream();
}

at::Tensor Mechanism::forward_cross(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  throw UserError(
      "this attention cannot attend from one sequence to another; those that can: cosformer, cosformer_plus and linear "
      "(but with feature_map=softmax), softmax, performer, rfa and one_vs_each");
}

MechanismState Mechanism::cross_memory(const at::Tensor& k, const at::Tensor& v, const at::Tensor& key_mask) const {
  return {{k, v, key_mask}};
}

at::Tensor Mechanism::recall(const at::Tensor& q, const MechanismState& memory, const StreamClock&) {
  return forward_cross(q, memory.tensors.at(0), memory.tensors.at(1), memory.tensors.at(2));
}

std::shared_ptr<Mechanism> make_mechanism(const AttentionConfig& config, const AttentionShape& shape) {
  require_possible(config, shape.causal);
  const std::string& name = config.name;
  if (name == "bigbird") return std::make_shared<BigBirdMechanism>(config, shape);
  if (name == "linformer") return std::make_shared<LinformerMechanism>(config, shape);
  if (name == "local") return std::make_shared<LocalMechanism>(config, shape);
  if (name == "longformer") return std::make_shared<LongformerMechanism>(config, shape);
  if (name == "nystromformer") return std::make_shared<NystromformerMechanism>(config, shape);
  if (name == "one_vs_each") return std::make_shared<OneVsEachMechanism>(config, shape);
  if (name == "performer") return std::make_shared<PerformerMechanism>(config, shape);
  if (name == "reformer") return std::make_shared<ReformerMechanism>(config, shape);
  if (name == "rfa") return std::make_shared<RfaMechanism>(config, shape);
  if (name == "sinkhorn") return std::make_shared<SinkhornMechanism>(config, shape);
  if (name == "softmax") return std::make_shared<SoftmaxMechanism>(config, shape);
  if (name == "sparse") return std::make_shared<SparseMechanism>(config, shape);
  if (name == "synthesizer") return std::make_shared<SynthesizerMechanism>(config, shape);
  if (config.feature_map == "softmax") return std::make_shared<CosineSoftmaxMechanism>(config, shape);
  if (config.token_decay) return std::make_shared<TokenDecayMechanism>(config, shape);
  return std::make_shared<CosineMechanism>(config, shape);
}

}  // namespace cosformer::nn
