#include "nn/mechanism.h"

#include "nn/cosine_mechanism.h"
#include "nn/softmax_mechanism.h"

namespace cosformer::nn {

std::shared_ptr<Mechanism> make_mechanism(const AttentionConfig& config, const AttentionShape& shape) {
  require_possible(config, shape.causal);
  if (config.name == "softmax") return std::make_shared<SoftmaxMechanism>(config, shape);
  return std::make_shared<CosineMechanism>(config, shape);
}

}  // namespace cosformer::nn
