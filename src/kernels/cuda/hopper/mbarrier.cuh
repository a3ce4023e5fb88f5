// Barriers in shared memory: some arrive, others wait for the round to be complete, nobody else is held up.
#pragma once

#include <cstdint>

namespace cosformer::kernels::cuda::mbarrier {

// For `arrivals` to a round. Must be published before its first use.
__device__ __forceinline__ void init(std::uint32_t barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Nobody uses it any more, and its memory may become something else.
__device__ __forceinline__ void inval(std::uint32_t barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// An arrival, after which the round also waits for bytes from the memory's copy engine.
__device__ __forceinline__ void arrive_expect_tx(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// An arrival of this thread as soon as all of its copies so far have come.
__device__ __forceinline__ void arrive_when_copied(std::uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
// Waits for the end of a round: `round` 0 for the first one, then 1, then 0 again.
__device__ __forceinline__ void wait(std::uint32_t barrier, unsigned round) {
  asm volatile(
      "{\n.reg .pred done;\nwaiting:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra waiting;\n}" ::"r"(barrier),
      "r"(round)
      : "memory");
}

}  // namespace cosformer::kernels::cuda::mbarrier
