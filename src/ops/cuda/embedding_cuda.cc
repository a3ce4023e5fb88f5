// Embeddings and their gradient on NVIDIA GPUs. Nothing here waits for the device, so a call can be captured in a CUDA
// graph.
#include <cstdint>
#include <limits>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "kernels/cuda/embedding/embedding_gradient.h"
#include "kernels/cuda/embedding/embedding_rows.h"
#include "ops/cuda/status.h"
#include "ops/embedding.h"
#include "ops/tensor_views.h"

namespace cosformer::ops {
namespace {

namespace cuda = kernels::cuda;

void require_ids(const at::Tensor& table_or_gradient, const at::Tensor& ids) {
  TORCH_CHECK(ids.device() == table_or_gradient.device(), "cosformer: ids of an embedding on ", ids.device(),
              ", its numbers on ", table_or_gradient.device(), "; move them to one device");
  TORCH_CHECK(at::isIntegralType(ids.scalar_type(), /*includeBool=*/false),
              "cosformer: ids of an embedding must be integers; got ", ids.scalar_type());
}

at::Tensor cuda_fwd(const at::Tensor& table, const at::Tensor& tokens, const Optional<at::Tensor>& onto) {
  if (table.scalar_type() == at::kDouble) return torch_embedding_fwd(table, tokens, onto);
  require_ids(table, tokens);
  TORCH_CHECK(table.dim() == 2, "cosformer: an embedding's table must be [rows, width]; got ", table.sizes());
  const c10::cuda::CUDAGuard guard(table.device());
  const at::Tensor rows = table.contiguous(), ids = tokens.to(at::kLong).contiguous();
  std::vector<std::int64_t> shape = tokens.sizes().vec();
  shape.push_back(table.size(1));
  TORCH_CHECK(!onto || (onto->sizes() == shape && onto->dtype() == table.dtype() && onto->device() == table.device()),
              "cosformer: what an embedding is added to must be ", at::IntArrayRef(shape),
              " in the table's type, on its device");
  const at::Tensor x = onto ? onto->contiguous() : at::Tensor();
  const at::Tensor y = at::empty(shape, rows.options());
  cuda::EmbeddingRows problem;
  problem.dtype = dtype_of(rows.scalar_type());
  problem.tokens = ids.numel();
  problem.width = rows.size(1);
  problem.rows = rows.size(0);
  problem.ids = ids.data_ptr<std::int64_t>();
  problem.table = rows.data_ptr();
  problem.x = x.defined() ? x.data_ptr() : nullptr;
  problem.y = y.data_ptr();
  check(cuda::embedding_rows(problem, at::cuda::getCurrentCUDAStream()), "the embedding");
  return y;
}

at::Tensor cuda_bwd(const at::Tensor& gradient, const at::Tensor& tokens, std::int64_t rows) {
  if (gradient.scalar_type() == at::kDouble || rows > std::numeric_limits<std::int32_t>::max()) {
    return torch_embedding_bwd(gradient, tokens, rows);
  }
  require_ids(gradient, tokens);
  const c10::cuda::CUDAGuard guard(gradient.device());
  const at::Tensor dy = gradient.contiguous();
  // The fewer bytes an id has, the sooner they are in order. Ids outside the table stay outside.
  const at::ScalarType narrow = rows <= std::numeric_limits<std::int16_t>::max() ? at::kShort : at::kInt;
  const auto [sorted, order] =
      at::sort(tokens.flatten().clamp(-1, rows).to(narrow), /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const at::Tensor ids = sorted.to(at::kInt);
  const at::Tensor table = at::empty({rows, dy.size(-1)}, dy.options());
  cuda::EmbeddingGradient problem;
  problem.dtype = dtype_of(dy.scalar_type());
  problem.tokens = ids.numel();
  problem.width = dy.size(-1);
  problem.rows = rows;
  problem.ids = ids.data_ptr<std::int32_t>();
  problem.order = order.data_ptr<std::int64_t>();
  problem.dy = dy.data_ptr();
  problem.gradient = table.data_ptr();
  const at::Tensor workspace = at::empty({cuda::embedding_workspace(problem)}, dy.options().dtype(at::kFloat));
  check(cuda::embedding_gradient(problem, workspace.data_ptr<float>(), at::cuda::getCurrentCUDAStream()),
        "the gradient of the embedding");
  return table;
}

}  // namespace

TORCH_LIBRARY_IMPL(cosformer, CUDA, m) {
  m.impl("_embedding_fwd", cuda_fwd);
  m.impl("_embedding_bwd", cuda_bwd);
}

}  // namespace cosformer::ops
