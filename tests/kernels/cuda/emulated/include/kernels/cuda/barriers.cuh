// The barriers of kernels/cuda/barriers.cuh on the emulated device.
#pragma once

#include "instructions.cuh"

namespace cosformer::kernels::cuda::barriers {

// The race detector sees a barrier's bytes written by who makes it and read by who uses it.
inline void set_up(std::uint32_t barrier, unsigned arrivals) {
  shared_as<std::uint64_t>(barrier) = arrivals;
  emulated::barriers::set_up(barrier, arrivals);
}
inline void retire(std::uint32_t barrier) {
  shared_as<std::uint64_t>(barrier) = 0;
  emulated::barriers::retire(barrier);
}
inline void touch(std::uint32_t barrier) {
  const volatile std::uint64_t& bytes = shared_as<std::uint64_t>(barrier);
  if (bytes == ~std::uint64_t{0}) emulated::fail("a barrier that nobody has set up");
}
inline void arrive(std::uint32_t barrier) {
  touch(barrier);
  emulated::barriers::arrive(barrier);
}
inline void arrive_and_expect(std::uint32_t barrier, std::uint32_t bytes) {
  touch(barrier);
  emulated::barriers::expect(barrier, bytes);
  emulated::barriers::arrive(barrier);
}
inline void arrive_when_copied(std::uint32_t barrier) {
  emulated::finish_copies();
  arrive(barrier);
}
inline void wait(std::uint32_t barrier, unsigned round) {
  touch(barrier);
  emulated::barriers::wait(barrier, round);
}

}  // namespace cosformer::kernels::cuda::barriers
