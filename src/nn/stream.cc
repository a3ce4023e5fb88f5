#include "nn/stream.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

namespace cosformer::nn {

StreamClock::StreamClock(std::vector<std::int64_t> consumed, at::Device device)
    : consumed_(std::move(consumed)), position_(at::tensor(consumed_, at::kLong).to(device)) {}

StreamClock::StreamClock(std::int64_t batch, at::Device device, std::int64_t consumed)
    : StreamClock(std::vector<std::int64_t>(static_cast<std::size_t>(batch), consumed), device) {}

std::int64_t StreamClock::most_consumed() const {
  return consumed_.empty() ? 0 : *std::max_element(consumed_.begin(), consumed_.end());
}

bool StreamClock::in_step() const {
  return std::adjacent_find(consumed_.begin(), consumed_.end(), std::not_equal_to<>()) == consumed_.end();
}

at::Tensor StreamClock::positions(std::int64_t time) const {
  return position_.unsqueeze(1) + at::arange(time, position_.options()).unsqueeze(0);
}

void StreamClock::advance(std::int64_t tokens) {
  for (std::int64_t& count : consumed_) count += tokens;
  position_ = position_ + tokens;  // a new tensor: the old one may be kept for a backward pass
}

void StreamClock::restart(std::int64_t row) {
  consumed_.at(static_cast<std::size_t>(row)) = 0;
  position_ = position_.clone();
  position_[row].zero_();
}

Packing Packing::of(const at::Tensor& cu_seqlens, std::int64_t batch, std::int64_t time) {
  const at::Tensor ends = cu_seqlens.narrow(0, 1, cu_seqlens.size(0) - 1).to(at::kLong).contiguous();
  const at::Tensor tokens = at::arange(batch * time, ends.options());
  const at::Tensor document = at::bucketize(tokens, ends, /*out_int32=*/false, /*right=*/true);
  const at::Tensor position = tokens - cu_seqlens.to(at::kLong).index_select(0, document);
  return {cu_seqlens, document.view({batch, time}), position.view({batch, time})};
}

}  // namespace cosformer::nn
