// Options of stochastic positions, as data.
#pragma once

#include <cstdint>

namespace cosformer::nn {

struct StochasticPositionConfig {
  std::int64_t realizations = 32;  // R, the dimension of queries and keys after it
  std::int64_t sines = 5;
  bool gated = false;  // a learned part of each position kernel is one, whatever the distance
};

}  // namespace cosformer::nn
