// Training images as they could have been as well: mirrored, turned. Drawn from torch's generator of the device. `on`,
// a scalar on the device: 1, or 0 for images as they are; so that one captured step serves for both.
#pragma once

#include <ATen/core/Tensor.h>

namespace cosformer::train {

// Each of content [B, height * width], half of the images mirrored left to right.
at::Tensor mirrored(const at::Tensor& content, std::int64_t width, std::int64_t height, const at::Tensor& on);

// Each of content [B, side * side] turned by none to three quarters.
at::Tensor rotated(const at::Tensor& content, std::int64_t side, const at::Tensor& on);

}  // namespace cosformer::train
