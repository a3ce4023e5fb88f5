// The gradient of embeddings on NVIDIA GPUs. Nothing here waits for the device, so a call can be captured in a CUDA
// graph.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "kernels/cuda/embedding_gradient.h"
#include "ops/cuda/status.h"
#include "ops/tensor_views.h"

namespace cosformer::ops {
namespace {

namespace cuda = kernels::cuda;

at::Tensor cuda_bwd(const at::Tensor& gradient, const at::Tensor& tokens, std::int64_t rows) {
  if (rows > cuda::kMostEmbeddingRows || gradient.scalar_type() == at::kDouble) {
    return at::embedding_dense_backward(gradient, tokens, rows, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false);
  }
  const c10::cuda::CUDAGuard guard(gradient.device());
  const at::Tensor dy = gradient.contiguous(), ids = tokens.to(at::kLong).contiguous();
  cuda::EmbeddingGradient problem;
  problem.dtype = dtype_of(dy.scalar_type());
  problem.tokens = ids.numel();
  problem.width = dy.size(-1);
  problem.rows = rows;
  problem.ids = ids.data_ptr<std::int64_t>();
  problem.dy = dy.data_ptr();
  const at::Tensor partial =
      at::empty({cuda::embedding_parts(problem), rows, problem.width}, dy.options().dtype(at::kFloat));
  check(cuda::embedding_gradient(problem, partial.data_ptr<float>(), at::cuda::getCurrentCUDAStream()),
        "the gradient of the embedding");
  return (partial.size(0) == 1 ? partial[0] : partial.sum(0)).to(dy.scalar_type());
}

}  // namespace

TORCH_LIBRARY_IMPL(cosformer, CUDA, m) {
  m.impl("_embedding_bwd", cuda_bwd);
}

}  // namespace cosformer::ops
