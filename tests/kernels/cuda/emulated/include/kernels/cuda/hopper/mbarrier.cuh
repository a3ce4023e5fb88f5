// The barriers of kernels/cuda/hopper/mbarrier.cuh on the emulated device.
#pragma once

#include "../instructions.cuh"

namespace cosformer::kernels::cuda::mbarrier {

// The race detector sees a barrier's bytes written by who makes it and read by who uses it.
inline void init(std::uint32_t barrier, unsigned arrivals) {
  shared_as<std::uint64_t>(barrier) = arrivals;
  emulated::mbarrier::init(barrier, arrivals);
}
inline void inval(std::uint32_t barrier) {
  shared_as<std::uint64_t>(barrier) = 0;
  emulated::mbarrier::inval(barrier);
}
inline void touch(std::uint32_t barrier) {
  const volatile std::uint64_t& bytes = shared_as<std::uint64_t>(barrier);
  if (bytes == ~std::uint64_t{0}) emulated::fail("a barrier that nobody has set up");
}
inline void arrive(std::uint32_t barrier) {
  touch(barrier);
  emulated::mbarrier::arrive(barrier);
}
inline void arrive_expect_tx(std::uint32_t barrier, std::uint32_t bytes) {
  touch(barrier);
  emulated::mbarrier::expect(barrier, bytes);
  emulated::mbarrier::arrive(barrier);
}
inline void arrive_when_copied(std::uint32_t barrier) {
  emulated::finish_copies();
  arrive(barrier);
}
inline void wait(std::uint32_t barrier, unsigned round) {
  touch(barrier);
  emulated::mbarrier::wait(barrier, round);
}

}  // namespace cosformer::kernels::cuda::mbarrier
