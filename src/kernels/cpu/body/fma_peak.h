// What the multipliers can do: a loop of independent multiply-additions in registers, and nothing else.
#pragma once

#include <time.h>

#include "kernels/cpu/body/half_gemm.h"

namespace cosformer::kernels::cpu {
namespace {

double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The best of many short rounds within `seconds`: other work on the machine only ever slows a round down.
template <class Round>
double best_gflops(double seconds, double flops_per_round, Round round) {
  double best = 0;
  for (const double end = seconds_now() + seconds; seconds_now() < end;) {
    const double begin = seconds_now();
    round();
    const double gflops = 1e-9 * flops_per_round / (seconds_now() - begin);
    best = gflops > best ? gflops : best;
  }
  return best;
}

double measure_fma_gflops_here(double seconds) {
  constexpr int kSums = COSFORMER_TILE_REGISTERS >= 24 ? 20 : 10;
  constexpr Index kSteps = 100000;
  return best_gflops(seconds, 2.0 * kSums * kSteps * kLanes<float>, [] {
    Vector<float> sums[kSums];
    COSFORMER_UNROLL for (int i = 0; i < kSums; ++i) sums[i] = Vector<float>{} + static_cast<float>(i);
    Vector<float> factor = Vector<float>{} + 0.999F, term = Vector<float>{} + 0.001F;
    for (Index step = 0; step < kSteps; ++step) {
      __asm__ volatile("" : : : "memory");
      COSFORMER_UNROLL for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + term;
    }
    Vector<float> total = {};
    COSFORMER_UNROLL for (int i = 0; i < kSums; ++i) total += sums[i];
    __asm__ volatile("" : : "m"(total));
  });
}

#if defined(COSFORMER_BF16_TILES)
double measure_bf16_gflops_here(double seconds) {
  const HalfUnit unit;
  constexpr Index kSteps = 10000;
  return best_gflops(seconds, 2.0 * 4 * 16 * 16 * 32 * kSteps, [] {
    for (Index step = 0; step < kSteps; ++step) {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  });
}
#elif defined(COSFORMER_BF16_DOT)
double measure_bf16_gflops_here(double seconds) {
  constexpr int kSums = 20;
  constexpr Index kSteps = 100000;
  return best_gflops(seconds, 4.0 * kSums * kSteps * kLanes<float>, [] {
    __m512 sums[kSums];
    COSFORMER_UNROLL for (int i = 0; i < kSums; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
    const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
    for (Index step = 0; step < kSteps; ++step) {
      __asm__ volatile("" : : : "memory");
      COSFORMER_UNROLL for (int i = 0; i < kSums; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], ones, ones);
    }
    __m512 total = _mm512_setzero_ps();
    COSFORMER_UNROLL for (int i = 0; i < kSums; ++i) total = _mm512_add_ps(total, sums[i]);
    __asm__ volatile("" : : "m"(total));
  });
}
#endif

}  // namespace
}  // namespace cosformer::kernels::cpu
