#include "nn/mechanisms/sparse/block_pattern.h"

#include <limits>

#include <ATen/ATen.h>

namespace cosformer::nn {

std::int64_t blocks_in(std::int64_t tokens, std::int64_t block) {
  return (tokens + block - 1) / block;
}

at::Tensor neighbouring_blocks(std::int64_t blocks, std::int64_t before, std::int64_t after, c10::Device device) {
  const auto options = at::TensorOptions(at::kLong).device(device);
  const at::Tensor lists =
      at::arange(blocks, options).unsqueeze(1) + at::arange(-before, after + 1, options).unsqueeze(0);
  return lists.masked_fill(lists.ge(blocks), -1).clamp_min(-1).unsqueeze(0);
}

at::Tensor with_leading_blocks(const at::Tensor& lists, std::int64_t count) {
  if (count == 0) return lists;
  const at::Tensor leading = at::arange(count, lists.options()).expand({lists.size(0), lists.size(1), count});
  return at::cat({leading, lists.masked_fill(lists.lt(count), -1)}, 2);
}

PairRule earlier_only() {
  return [](at::Tensor& scores, const at::Tensor& queries, const at::Tensor& keys) {
    scores.masked_fill_(keys.select(-1, 0).gt(queries.select(-1, 0)), -std::numeric_limits<double>::infinity());
  };
}

}  // namespace cosformer::nn
