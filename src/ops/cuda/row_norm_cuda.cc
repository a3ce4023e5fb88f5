// LayerNorm and RMSNorm on NVIDIA GPUs. Nothing here waits for the device, so a call can be captured in a CUDA graph.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "kernels/cuda/norm/row_norm.h"
#include "ops/boxing.h"
#include "ops/cuda/status.h"
#include "ops/row_norm.h"
#include "ops/tensor_views.h"

namespace cosformer::ops {
namespace {

namespace cuda = kernels::cuda;

// The kernels write rows in their own type, or float32 rows in any. Other pairs begin with float32.
at::Tensor readable(const at::Tensor& x, at::ScalarType type) {
  const bool is_known = x.scalar_type() == type && type != at::kDouble;
  return (is_known ? x : x.to(at::kFloat)).contiguous();
}

at::ScalarType writable(at::ScalarType type) {
  return type == at::kDouble ? at::kFloat : type;
}

at::Tensor floats(const at::Tensor& x) {
  return x.to(at::kFloat).contiguous();
}

// Of rows that the kernels can read, beside rows of `type`.
cuda::RowNorm problem_of(const at::Tensor& x, const at::Tensor& weight, at::ScalarType type,
                         const RowNormArguments& a) {
  cuda::RowNorm problem;
  problem.x_dtype = dtype_of(x.scalar_type());
  problem.y_dtype = dtype_of(type);
  problem.width = weight.size(0);
  problem.rows = x.numel() / problem.width;
  problem.eps = static_cast<float>(a.options.eps);
  problem.centered = a.bias.defined();
  problem.x = x.data_ptr();
  problem.weight = weight.data_ptr<float>();
  return problem;
}

RowNormResult cuda_fwd(const RowNormArguments& a, at::ScalarType type) {
  const c10::cuda::CUDAGuard guard(a.x.device());
  const bool centered = a.bias.defined();
  const at::Tensor x = readable(a.x, type), w = floats(a.weight), b = centered ? floats(a.bias) : at::Tensor();
  const at::Tensor y = at::empty(x.sizes(), x.options().dtype(writable(type)));
  check(cuda::row_norm_fwd(problem_of(x, w, y.scalar_type(), a), centered ? b.data_ptr<float>() : nullptr, y.data_ptr(),
                           at::cuda::getCurrentCUDAStream()),
        "the norm");
  return {y.to(type), at::Tensor(), at::Tensor()};
}

RowNormGradients cuda_bwd(const at::Tensor& gradient, const RowNormArguments& a, const at::Tensor& /*mean*/,
                          const at::Tensor& /*inverse*/) {
  const c10::cuda::CUDAGuard guard(a.x.device());
  const bool centered = a.bias.defined();
  const at::Tensor dy = gradient.to(writable(gradient.scalar_type())).contiguous();
  const at::Tensor x = readable(a.x, dy.scalar_type()), w = floats(a.weight);
  const cuda::RowNorm problem = problem_of(x, w, dy.scalar_type(), a);
  const at::Tensor dx = at::empty(x.sizes(), x.options()), dweight = at::empty_like(w);
  const at::Tensor dbias = centered ? at::empty_like(w) : at::Tensor();
  const at::Tensor workspace = at::empty({cuda::row_norm_workspace_floats(problem)}, w.options());
  check(cuda::row_norm_bwd(problem, dy.data_ptr(), dx.data_ptr(), dweight.data_ptr<float>(),
                           centered ? dbias.data_ptr<float>() : nullptr, workspace.data_ptr<float>(),
                           at::cuda::getCurrentCUDAStream()),
        "the gradient of the norm");
  const at::ScalarType type = a.weight.scalar_type();
  return {dx.to(a.x.scalar_type()), dweight.to(type), centered ? dbias.to(type) : dbias};
}

}  // namespace

TORCH_LIBRARY_IMPL(cosformer, CUDA, m) {
  m.impl("_row_norm_fwd", boxed<cuda_fwd>());
  m.impl("_row_norm_bwd", boxed<cuda_bwd>());
}

}  // namespace cosformer::ops
