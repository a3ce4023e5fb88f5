// All that a language model remembers of the text behind it.
#pragma once

#include <cstdint>
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

  // What has to be remembered; of caches that grow, the part in use.
  std::uint64_t bytes() const;
  // The same as tensors: "layer_0.convolution", "layer_0.mechanism_0". Caches without the room that is not in use.
  nn::NamedTensors tensors() const;
};

}  // namespace cosformer::models
