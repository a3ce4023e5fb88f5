#include "ops/cpu/row_products.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "kernels/cpu/products/row_products.h"

namespace cosformer::ops {
namespace {

// Less than this, in multiplications, is done sooner than other threads are woken.
constexpr std::int64_t kWorthAThread = 1 << 18;

}  // namespace

at::Tensor row_products(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias) {
  const at::Tensor rows = x.contiguous(), weight = w.contiguous(), added = bias.defined() ? bias.contiguous() : bias;
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  const at::Tensor out = at::empty(shape, rows.options());
  const std::int64_t k = weight.size(1), columns = weight.size(0);
  const kernels::cpu::RowProducts products{rows.data_ptr<float>(),
                                           weight.data_ptr<float>(),
                                           added.defined() ? added.data_ptr<float>() : nullptr,
                                           out.data_ptr<float>(),
                                           k > 0 ? rows.numel() / k : 0,
                                           columns,
                                           k};
  const std::int64_t work = products.rows * columns * k;
  const int threads = at::in_parallel_region()
                          ? 1
                          : static_cast<int>(std::clamp<std::int64_t>(work / kWorthAThread, 1, at::get_num_threads()));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int part = 0; part < threads; ++part) {
    kernels::cpu::multiply_rows(products, columns * part / threads, columns * (part + 1) / threads);
  }
  return out;
}

}  // namespace cosformer::ops
