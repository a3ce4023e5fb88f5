#include "ops/embedding.h"

#include <ATen/ATen.h>
#include <torch/library.h>

namespace cosformer::ops {
namespace {

using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, std::int64_t);

at::Tensor torch_bwd(const at::Tensor& dy, const at::Tensor& ids, std::int64_t rows) {
  return at::embedding_dense_backward(dy, ids, rows, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false);
}

}  // namespace

at::Tensor embedding_bwd(const at::Tensor& dy, const at::Tensor& ids, std::int64_t rows) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("cosformer::_embedding_bwd", "").typed<Signature>();
  return op.call(dy, ids, rows);
}

TORCH_LIBRARY_FRAGMENT(cosformer, m) {
  m.def("_embedding_bwd(Tensor dy, Tensor ids, int rows) -> Tensor");
}

TORCH_LIBRARY_IMPL(cosformer, CompositeExplicitAutograd, m) {
  m.impl("_embedding_bwd", torch_bwd);
}

}  // namespace cosformer::ops
