#include "nn/mechanisms/kernelised/random_features.h"

#include <vector>

#include <ATen/ATen.h>

namespace cosformer::nn {

at::Tensor gaussian_directions(std::int64_t heads, std::int64_t count, std::int64_t dim) {
  return at::randn({heads, count, dim});
}

at::Tensor orthogonal_directions(std::int64_t heads, std::int64_t count, std::int64_t dim) {
  const std::int64_t groups = (count + dim - 1) / dim;
  const auto [q, r] = at::linalg_qr(at::randn({heads * groups, dim, dim}, at::kDouble));
  // Without the signs of R's diagonal the matrices would not be uniformly distributed.
  const at::Tensor signs = at::where(r.diagonal(0, -2, -1) < 0, -1.0, 1.0).unsqueeze(-2);
  const at::Tensor rows = (q * signs).reshape({heads, groups * dim, dim}).narrow(1, 0, count);
  const at::Tensor lengths = at::randn({heads, count, dim}, at::kDouble).norm(2, -1, true);
  return (rows * lengths).to(at::kFloat);
}

at::Tensor RedrawSchedule::new_count() {
  return at::zeros({1}, at::kLong);
}

bool RedrawSchedule::is_due(at::Tensor& count, std::int64_t interval) {
  if (interval == 0) return false;
  if (static_cast<std::int64_t>(count._version()) != version_) value_ = count.item<std::int64_t>();
  const bool is_due = value_ > 0 && value_ % interval == 0;
  at::NoGradGuard no_grad;
  count.fill_(++value_);
  version_ = static_cast<std::int64_t>(count._version());
  return is_due;
}

}  // namespace cosformer::nn
