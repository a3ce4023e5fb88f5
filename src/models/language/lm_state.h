// All that a language model remembers of the text behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nn/stream.h"
#include "nn/tensor_file.h"

namespace cosformer::models {

// Copies are cheap and independent: going on with one leaves the other as it was.
struct LmState {
  nn::StreamClock clock;
  std::vector<nn::LayerState> layers;

  // Gradients stop here: between the windows of truncated back-propagation.
  void detach();
  // The row's text ends here; what comes next is the beginning of another.
  void restart(std::int64_t row);
  // `count` rows, each like the only row of this state.
  LmState repeated(std::int64_t count) const;
  // The rows of several states as one batch, and some rows of it, as new tensors. Not of caches that grow.
  static LmState joined(const std::vector<const LmState*>& states);
  LmState rows(const std::vector<std::int64_t>& which) const;
  // Whether there is a cache that grows with the text.
  bool has_cache() const;

  // What has to be remembered; of caches that grow, the part in use.
  std::uint64_t bytes() const;
  // The same as tensors: "layer_0.convolution", "layer_0.mechanism_0". Caches without the room that is not in use.
  nn::NamedTensors tensors() const;
  // Of a fresh state: puts `tensor(name, like)` in the place of each of them, `like` being what is there. A cache,
  // which is empty then (is_cache), becomes as long as what it gets.
  void replace(const std::function<at::Tensor(const std::string& name, const at::Tensor& like)>& tensor);
  static bool is_cache(const at::Tensor& fresh) { return fresh.dim() == 4 && fresh.size(2) == 0; }
};

}  // namespace cosformer::models
