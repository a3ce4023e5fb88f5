// The barrier of all blocks, for the emulated device.
#pragma once

#include "cuda_runtime.h"

namespace cooperative_groups {

struct grid_group {
  struct arrival_token {
    std::uint64_t round;
  };
  arrival_token barrier_arrive() const { return {emulated::grid_arrive()}; }
  void barrier_wait(arrival_token&& token) const { emulated::grid_wait(token.round); }
  void sync() const { barrier_wait(barrier_arrive()); }
};
inline grid_group this_grid() {
  return {};
}

}  // namespace cooperative_groups
