#include "nn/softmax_mechanism.h"

#include <ATen/ATen.h>

#include "ops/torch_compat.h"

namespace cosformer::nn {

at::Tensor SoftmaxMechanism::forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const at::Tensor& key_mask) {
  const at::Tensor visible = key_mask.defined() ? key_mask.unsqueeze(1).unsqueeze(1) : at::Tensor();  // [B, 1, 1, T]
  const double dropout = is_training() ? config_.dropout : 0;
  return ops::softmax_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), shape_.causal, visible,
                                dropout)
      .transpose(1, 2);
}

}  // namespace cosformer::nn
