#include "models/trained_weights.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "cosformer/weights.h"

namespace cosformer::models {

void load_trained_weights(const std::string& path, torch::nn::Module& module) {
  load_weights(path, module);
  for (const auto& item : module.named_parameters()) {
    if (item.value().isfinite().all().item<bool>()) continue;
    throw UserError(
        fmt::format("'{}' holds weights that are not finite numbers ('{}'), so the model has no answers; go back to a "
                    "checkpoint from before, or train anew with a smaller train.lr",
                    path, item.key()));
  }
  module.eval();
}

}  // namespace cosformer::models
