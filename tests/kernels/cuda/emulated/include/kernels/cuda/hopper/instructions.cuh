// The instructions of kernels/cuda/hopper/instructions.cuh on the emulated device.
#pragma once

#include "../instructions.cuh"

namespace cosformer::kernels::cuda {

inline void store_matrices(std::uint32_t row, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  const std::uint32_t share[4] = {a, b, c, d};
  uint4 own;
  emulated::gather_rows(share, &own, false);
  shared_as<uint4>(row) = own;
}
inline void store_matrices(std::uint32_t row, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t share[4] = {a, b, 0, 0};
  uint4 own;
  emulated::gather_rows(share, &own, false);
  if (emulated::own_lane() < 16) shared_as<uint4>(row) = own;
}
inline void store_matrices_transposed(std::uint32_t row, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                      std::uint32_t d) {
  const std::uint32_t share[4] = {a, b, c, d};
  uint4 own;
  emulated::gather_rows(share, &own, true);
  shared_as<uint4>(row) = own;
}

template <int kRegisters>
void give_registers() {}
template <int kRegisters>
void take_registers() {}

namespace wgmma {

inline void publish_shared() {}
inline void fence() {}
inline void commit() {
  emulated::commit_products();
}
template <int kPending>
void wait() {
  emulated::wait_products(kPending);
}
template <int kTiles>
void settle(float (&)[kTiles][4]) {}

template <bool kRows, int kTiles>
void multiply(float (&c)[kTiles][4], const std::uint32_t (&a)[4], std::uint64_t b, bool add) {
  emulated::begin_product(&c[0][0], kTiles, a, {b, kRows}, add);
}
inline void multiply_shared(float (&c)[4], std::uint64_t a, std::uint64_t b, bool add) {
  emulated::begin_product(c, 1, {a, true}, {b, false}, add);
}

}  // namespace wgmma
}  // namespace cosformer::kernels::cuda
