// Tokens in another order, differently in each group, and back. Both ways and both gradients are gathers of whole rows,
// so results do not depend on the order in which a device adds.
#pragma once

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

class TokenOrder {
 public:
  // keys [G, T] int64, all different within a row: ascending keys give the order.
  explicit TokenOrder(const at::Tensor& keys);

  const at::Tensor& token() const { return token_; }  // [G, T]: which token stands at a place
  const at::Tensor& place() const { return place_; }  // [G, T]: at which place a token stands

  // x [G, T] in order; no gradient.
  at::Tensor sorted(const at::Tensor& x) const { return x.gather(1, token_); }

  // [G, T, D] in order, and back.
  at::Tensor sort(const at::Tensor& x) const;
  at::Tensor restore(const at::Tensor& x) const;

 private:
  at::Tensor token_, place_;
};

}  // namespace cosformer::nn
