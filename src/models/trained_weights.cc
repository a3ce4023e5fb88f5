#include "models/trained_weights.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "cosformer/weights.h"

namespace cosformer::models {

void load_trained_weights(const std::string& path, torch::nn::Module& module) {
  load_weights(path, module);
  for (const auto& item : module.named_parameters()) {
    if (item.value().isfinite().all().item<bool>()) continue;
    throw UserError("'" + path + "' holds weights that are not finite numbers ('" + item.key() +
                    "'), so the model has no answers; go back to a checkpoint from before, or train anew with a "
                    "smaller train.lr");
  }
  module.eval();
}

}  // namespace cosformer::models
