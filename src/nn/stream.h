// What a causal model carries from one stretch of a text to the next, and where the tokens of a batch stand.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

// How many tokens each sequence of a batch has behind it. On the host too, because nothing waits for a device to find
// out whether there is room for more.
class StreamClock {
 public:
  StreamClock() = default;
  StreamClock(std::int64_t batch, at::Device device, std::int64_t consumed = 0);  // of each row
  StreamClock(std::vector<std::int64_t> consumed, at::Device device);

  const std::vector<std::int64_t>& consumed() const { return consumed_; }
  std::int64_t most_consumed() const;
  bool in_step() const;  // all rows have consumed as much

  const at::Tensor& position() const { return position_; }  // [B] int64 on the device: consumed()
  at::Tensor positions(std::int64_t time) const;            // [B, time]: of the next tokens

  void advance(std::int64_t tokens);
  void restart(std::int64_t row);

 private:
  std::vector<std::int64_t> consumed_;
  at::Tensor position_;
};

// What a mechanism remembers; what the tensors are is its own affair. The first dimension of each is the batch; a row
// begins with zeros.
struct MechanismState {
  std::vector<at::Tensor> tensors;
  std::int64_t length = 0;  // of a cache that grows: the tokens in it
};

// What an attention layer remembers.
struct LayerState {
  at::Tensor convolution;  // [B, width − 1, channels], the inputs before the next; undefined without a convolution
  MechanismState mechanism;
};

// Sequences that do not see each other, end to end over the rows of a batch.
struct Packing {
  at::Tensor cu_seqlens;  // [sequences + 1] int32 or int64 over all B·T tokens; every row begins a sequence
  at::Tensor document;    // [B, T] int64: the number of its sequence
  at::Tensor position;    // [B, T] int64: tokens before it in its sequence

  static Packing of(const at::Tensor& cu_seqlens, std::int64_t batch, std::int64_t time);
};

}  // namespace cosformer::nn
