#include "train/inputs/image_symmetries.h"

#include <ATen/ATen.h>

namespace cosformer::train {
namespace {

// One number in [0, 1) for each image.
at::Tensor drawn(const at::Tensor& content) {
  return at::rand({content.size(0), 1, 1}, content.options().dtype(at::kFloat));
}

}  // namespace

at::Tensor mirrored(const at::Tensor& content, std::int64_t width, std::int64_t height, const at::Tensor& on) {
  const at::Tensor images = content.view({content.size(0), height, width});
  return at::where(drawn(content).lt(0.5 * on), images.flip(2), images).reshape(content.sizes());
}

at::Tensor rotated(const at::Tensor& content, std::int64_t side, const at::Tensor& on) {
  const at::Tensor images = content.view({content.size(0), side, side});
  const at::Tensor quarters = drawn(content).mul(4 * on).to(at::kInt);
  const at::Tensor by_one = at::where(quarters.remainder(2).eq(1), images.transpose(1, 2).flip(2), images);
  return at::where(quarters.ge(2), by_one.flip({1, 2}), by_one).reshape(content.sizes());
}

}  // namespace cosformer::train
