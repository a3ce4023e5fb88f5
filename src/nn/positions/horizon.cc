#include "nn/positions/horizon.h"

#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::nn {

double checked_horizon(const AttentionConfig& config, const AttentionShape& shape) {
  const auto longest = static_cast<double>(shape.max_length);
  if (config.horizon == 0) return longest;
  if (config.horizon < longest) {
    throw UserError(
        fmt::format("settings: attention.horizon must not be below the model's greatest length, {} tokens; got {}",
                    shape.max_length, config.horizon));
  }
  return config.horizon;
}

}  // namespace cosformer::nn
