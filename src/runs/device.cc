#include "runs/device.h"

#include <ATen/autocast_mode.h>

#include "base/error.h"
#include "ops/device_info.h"
#include "ops/torch_compat.h"

namespace cosformer::runs {

at::Device device_of(const TrainConfig& config) {
  const bool has_cuda = ops::has_cuda_kernels() && at::hasCUDA();
  if (config.device == "cuda" && !has_cuda) {
    throw UserError(
        "train.device is cuda, but this program finds no GPU (or its libtorch has no CUDA); cosformer info tells more. "
        "Set train.device=cpu or auto");
  }
  return has_cuda && config.device != "cpu" ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

bool uses_bfloat16(const TrainConfig& config, at::Device device) {
  return config.precision == "bf16" || (config.precision == "auto" && device.is_cuda());
}

AutocastScope::AutocastScope(at::Device device, bool bfloat16) : device_(device), active_(bfloat16) {
  if (!active_) return;
  ops::set_autocast(device_.type(), true, at::kBFloat16);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (!active_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  ops::set_autocast(device_.type(), false, at::kBFloat16);
}

}  // namespace cosformer::runs
