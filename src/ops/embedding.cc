#include "ops/embedding.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "ops/registered.h"

namespace cosformer::ops {
namespace {

using Fwd = at::Tensor(const at::Tensor&, const at::Tensor&, const Optional<at::Tensor>&);
using Bwd = at::Tensor(const at::Tensor&, const at::Tensor&, std::int64_t);

}  // namespace

at::Tensor embedding_fwd(const at::Tensor& table, const at::Tensor& ids, const Optional<at::Tensor>& onto) {
  static const auto op = registered<Fwd>("cosformer::_embedding_fwd");
  return op.call(table, ids, onto);
}

at::Tensor embedding_bwd(const at::Tensor& dy, const at::Tensor& ids, std::int64_t rows) {
  static const auto op = registered<Bwd>("cosformer::_embedding_bwd");
  return op.call(dy, ids, rows);
}

at::Tensor torch_embedding_fwd(const at::Tensor& table, const at::Tensor& ids, const Optional<at::Tensor>& onto) {
  const at::Tensor rows = at::embedding(table, ids);
  return onto ? *onto + rows : rows;
}

at::Tensor torch_embedding_bwd(const at::Tensor& dy, const at::Tensor& ids, std::int64_t rows) {
  return at::embedding_dense_backward(dy, ids, rows, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false);
}

TORCH_LIBRARY_FRAGMENT(cosformer, m) {
  m.def("_embedding_fwd(Tensor table, Tensor ids, Tensor? onto) -> Tensor");
  m.def("_embedding_bwd(Tensor dy, Tensor ids, int rows) -> Tensor");
}

TORCH_LIBRARY_IMPL(cosformer, CompositeExplicitAutograd, m) {
  m.impl("_embedding_fwd", torch_embedding_fwd);
  m.impl("_embedding_bwd", torch_embedding_bwd);
}

}  // namespace cosformer::ops
