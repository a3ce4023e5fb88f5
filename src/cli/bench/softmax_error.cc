#include "cli/bench/softmax_error.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>

namespace cosformer::cli {
namespace {

using kernels::DType;

constexpr std::int64_t kPairs = 1 << 20;  // of a query and a key that are looked at: a second at most
constexpr std::int64_t kLeastRows = 16;

// One row, in `Number` throughout, with `rounded` applied to what passes through memory.
template <class Number, class Rounded>
std::vector<Number> softmax_row(const double* q, const double* k, const double* v, std::int64_t seen, std::int64_t dim,
                                const Rounded& rounded) {
  const auto count = static_cast<std::size_t>(seen), width = static_cast<std::size_t>(dim);
  const Number scale = 1 / std::sqrt(static_cast<Number>(dim));
  std::vector<Number> weights(count), out(width);
  for (std::size_t j = 0; j < count; ++j) {
    Number dot = 0;
    for (std::size_t d = 0; d < width; ++d) dot += static_cast<Number>(q[d]) * static_cast<Number>(k[j * width + d]);
    weights[j] = rounded(rounded(dot) * scale);
  }
  const Number most = *std::max_element(weights.begin(), weights.end());
  Number sum = 0;
  for (Number& w : weights) sum += w = std::exp(w - most);
  for (std::size_t j = 0; j < count; ++j) {
    const Number w = rounded(weights[j] / sum);
    for (std::size_t d = 0; d < width; ++d) out[d] += w * static_cast<Number>(v[j * width + d]);
  }
  for (Number& x : out) x = rounded(x);
  return out;
}

std::vector<double> naive_row(const double* q, const double* k, const double* v, std::int64_t seen, std::int64_t dim,
                              DType dtype) {
  if (dtype == DType::kFloat64) return softmax_row<double>(q, k, v, seen, dim, [](double x) { return x; });
  const auto row = softmax_row<float>(q, k, v, seen, dim, [dtype](float x) {
    if (dtype == DType::kBFloat16) return kernels::to_float(kernels::to_bfloat16(x));
    return dtype == DType::kFloat16 ? kernels::to_float(kernels::to_float16(x)) : x;
  });
  return {row.begin(), row.end()};
}

}  // namespace

SoftmaxError softmax_error(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                           bool causal, kernels::DType dtype) {
  const std::int64_t time = q.size(0), dim = q.size(1);
  const at::Tensor dense[] = {q.contiguous(), k.contiguous(), v.contiguous(), out.contiguous()};
  const double *const qs = dense[0].data_ptr<double>(), *const ks = dense[1].data_ptr<double>(),
                      *const vs = dense[2].data_ptr<double>(), *const outs = dense[3].data_ptr<double>();
  const std::int64_t rows = std::clamp(kPairs / time, std::min(kLeastRows, time), time);
  SoftmaxError result;
  double naive_error = 0, largest = 0;
  for (std::int64_t at = 0; at < rows; ++at) {
    const std::int64_t row = at * time / rows, seen = causal ? row + 1 : time;
    const auto exact = softmax_row<long double>(qs + row * dim, ks, vs, seen, dim, [](long double x) { return x; });
    const auto naive = naive_row(qs + row * dim, ks, vs, seen, dim, dtype);
    for (std::size_t d = 0; d < exact.size(); ++d) {
      const double got = outs[row * dim + static_cast<std::int64_t>(d)];
      const auto error = static_cast<double>(std::abs(got - exact[d]));
      if (std::isnan(got)) return {got, 0};
      result.error = std::max(result.error, error);
      largest = std::max(largest, std::abs(vs[row * dim + static_cast<std::int64_t>(d)]));
      naive_error = std::max(naive_error, static_cast<double>(std::abs(naive[d] - exact[d])));
    }
  }
  result.bound = std::max(2 * naive_error, 3 * kernels::unit_roundoff(dtype) * largest);
  return result;
}

}  // namespace cosformer::cli
