// TMA of kernels/cuda/hopper/tma.cuh on the emulated device.
#pragma once

#include <cstdint>

#include "kernels/cuda/hopper/params.h"
#include "mbarrier.cuh"

namespace cosformer::kernels::cuda::tma {

inline const emulated::TensorMap& tensor_of(const TensorMap& map) {
  return reinterpret_cast<const emulated::TensorMap&>(map);
}
inline void fetch(std::uint32_t shared, const TensorMap& map, int token, int head, int batch, std::uint32_t barrier,
                  int column = 0) {
  mbarrier::touch(barrier);
  emulated::fetch_box(shared, tensor_of(map), column, token, head, batch, barrier);
}
inline void store(const TensorMap& map, int token, int head, int batch, std::uint32_t shared, int column = 0) {
  emulated::store_box(tensor_of(map), column, token, head, batch, shared);
}
inline void await_stores_read() {
  emulated::await_stores(false);
}
inline void await_stores() {
  emulated::await_stores(true);
}

}  // namespace cosformer::kernels::cuda::tma
