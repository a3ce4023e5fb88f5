// The copy engine of kernels/cuda/boxes.cuh on the emulated device.
#pragma once

#include <cstdint>

#include "barriers.cuh"
#include "kernels/cuda/warpgroup_params.h"

namespace cosformer::kernels::cuda::boxes {

inline const emulated::TensorMap& tensor_of(const TileMap& map) {
  return reinterpret_cast<const emulated::TensorMap&>(map);
}
inline void fetch(std::uint32_t shared, const TileMap& map, int token, int head, int batch, std::uint32_t barrier,
                  int column = 0) {
  barriers::touch(barrier);
  emulated::fetch_box(shared, tensor_of(map), column, token, head, batch, barrier);
}
inline void store(const TileMap& map, int token, int head, int batch, std::uint32_t shared, int column = 0) {
  emulated::store_box(tensor_of(map), column, token, head, batch, shared);
}
inline void await_stores_read() {
  emulated::await_stores(false);
}
inline void await_stores() {
  emulated::await_stores(true);
}

}  // namespace cosformer::kernels::cuda::boxes
