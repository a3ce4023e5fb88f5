#include "nn/positions/positions.h"

#include <cmath>

#include <ATen/ATen.h>

namespace cosformer::nn {
namespace {

// [length, count] angles t · 10000^(−i/count), computed in double so that far tokens keep their digits.
at::Tensor angles(std::int64_t length, std::int64_t count) {
  const auto options = at::TensorOptions(at::kDouble);
  const at::Tensor frequencies =
      (at::arange(count, options) * (-std::log(10000.0) / static_cast<double>(std::max<std::int64_t>(count, 1)))).exp();
  return at::arange(length, options).unsqueeze(1) * frequencies.unsqueeze(0);
}

// By angles [2, (B,) T, 1, D/2], float32 whatever x is.
at::Tensor turned(const at::Tensor& x, const at::Tensor& angles) {
  const at::Tensor cosine = angles[0], sine = angles[1];
  const std::int64_t half = x.size(3) / 2;
  const at::Tensor a = x.narrow(3, 0, half), b = x.narrow(3, half, half);
  return at::cat({a * cosine - b * sine, b * cosine + a * sine}, 3).to(x.scalar_type());
}

}  // namespace

at::Tensor sinusoidal_table(std::int64_t length, std::int64_t width) {
  const at::Tensor a = angles(length, (width + 1) / 2);
  return at::cat({a.sin(), a.cos()}, 1).narrow(1, 0, width).to(at::kFloat).contiguous();
}

at::Tensor rotary_table(std::int64_t length, std::int64_t dim) {
  const at::Tensor a = angles(length, dim / 2);
  return at::stack({a.cos(), a.sin()}).to(at::kFloat).contiguous();
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& table) {
  return turned(x, table.narrow(1, 0, x.size(1)).unsqueeze(2));
}

at::Tensor rotate_at(const at::Tensor& x, const at::Tensor& table, const at::Tensor& positions) {
  const at::Tensor rows = table.index_select(1, positions.flatten());
  return turned(x, rows.view({2, positions.size(0), positions.size(1), 1, table.size(2)}));
}

}  // namespace cosformer::nn
