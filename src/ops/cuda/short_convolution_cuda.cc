// The short convolution on NVIDIA GPUs. Nothing here waits for the device, so a call can be captured in a CUDA graph.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "kernels/cuda/convolution/short_convolution.h"
#include "ops/cuda/status.h"
#include "ops/tensor_views.h"

namespace cosformer::ops {
namespace {

namespace cuda = kernels::cuda;

at::Tensor with_dense_channels(const at::Tensor& x) {
  return x.stride(2) == 1 ? x : x.contiguous();
}

cuda::TokenView view_of(const at::Tensor& x) {
  return {x.data_ptr(), x.stride(0), x.stride(1)};
}

cuda::ShortConvolution problem_of(const at::Tensor& x, std::int64_t width, std::int64_t before) {
  cuda::ShortConvolution problem;
  problem.dtype = dtype_of(x.scalar_type());
  problem.batch = x.size(0);
  problem.time = x.size(1);
  problem.channels = x.size(2);
  problem.width = width;
  problem.before = before;
  problem.x = view_of(x);
  return problem;
}

// Also the gradient of x, from dy, with the taps `reversed`.
at::Tensor convolved(const at::Tensor& input, const at::Tensor& weight, std::int64_t before, bool reversed) {
  const at::Tensor x = with_dense_channels(input), w = weight.to(at::kFloat).contiguous();
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor y = at::empty(x.sizes(), x.options());
  check(cuda::short_convolution(problem_of(x, w.size(0), before), w.data_ptr<float>(), reversed, y.data_ptr(),
                                at::cuda::getCurrentCUDAStream()),
        "the convolution");
  return y;
}

at::Tensor cuda_fwd(const at::Tensor& x, const at::Tensor& weight, std::int64_t before) {
  return convolved(x, weight, before, false);
}

std::tuple<at::Tensor, at::Tensor> cuda_bwd(const at::Tensor& dy, const at::Tensor& input, const at::Tensor& weight,
                                            std::int64_t before) {
  const std::int64_t width = weight.size(0);
  const at::Tensor dx = convolved(dy, weight, width - 1 - before, true);
  const at::Tensor x = with_dense_channels(input), dense_dy = with_dense_channels(dy);
  const c10::cuda::CUDAGuard guard(x.device());
  const cuda::ShortConvolution problem = problem_of(x, width, before);
  const at::Tensor partial = at::empty({cuda::weight_parts(problem), width, x.size(2)}, x.options().dtype(at::kFloat));
  check(cuda::short_convolution_weight_gradient(problem, view_of(dense_dy), partial.data_ptr<float>(),
                                                at::cuda::getCurrentCUDAStream()),
        "the gradient of the convolution's weights");
  return {dx, partial.sum(0).to(weight.scalar_type())};
}

}  // namespace

TORCH_LIBRARY_IMPL(cosformer, CUDA, m) {
  m.impl("_short_convolution_fwd", cuda_fwd);
  m.impl("_short_convolution_bwd", cuda_bwd);
}

}  // namespace cosformer::ops
