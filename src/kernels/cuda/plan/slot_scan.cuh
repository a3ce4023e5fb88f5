// Sums of segments become the state before each of them: a running sum through a head's slots, for some of a slot's
// numbers. What a kernel of its own does (states.cu) where blocks that sum cannot do it themselves.
#pragma once

#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/sweep_params.h"

namespace cosformer::kernels::cuda {

__device__ __forceinline__ float multiply_add(float factor, float x, float y) {
  return factor * x + y;
}
__device__ __forceinline__ float4 multiply_add(float factor, const float4& x, const float4& y) {
  return {factor * x.x + y.x, factor * x.y + y.y, factor * x.z + y.z, factor * x.w + y.w};
}

// Decays over whole segments, and over the two that a frame may fill in part.
struct SegmentDecays {
  float whole, first, last;
  int first_segment, last_segment;  // with tokens in them

  __device__ __forceinline__ SegmentDecays(const SweepParams& p, float log_decay, int frame_length) {
    const int padded = (frame_length + kFrameBlock - 1) / kFrameBlock * kFrameBlock;
    const int begin = p.reversed ? padded - frame_length : 0, end = begin + frame_length;
    first_segment = begin / p.segment_tokens;
    last_segment = frame_length == 0 ? -1 : (end - 1) / p.segment_tokens;
    whole = first = last = 1.0F;
    if (log_decay == 0.0F) return;
    const auto tokens_of = [&](int segment) {
      return min(end, (segment + 1) * p.segment_tokens) - max(begin, segment * p.segment_tokens);
    };
    whole = decay_of(log_decay, p.segment_tokens);
    first = decay_of(log_decay, tokens_of(first_segment));
    last = decay_of(log_decay, tokens_of(last_segment));
  }
  __device__ __forceinline__ float of(int segment) const {
    if (segment < first_segment || segment > last_segment) return 1.0F;
    return segment == last_segment ? last : (segment == first_segment ? first : whole);
  }
};

// Whose slots are scanned.
struct SlotScan {
  const SweepParams& p;
  std::int64_t head_index;
  float log_decay;
  SegmentDecays decays;
  bool backwards;  // last segment first
  bool total;      // only what follows the last segment is wanted

  __device__ __forceinline__ static float log_decay_of(const SweepParams& p, std::int64_t head_index) {
    return p.log_decay == nullptr ? 0.0F : p.log_decay[head_index % p.heads];
  }
  __device__ __forceinline__ SlotScan(const SweepParams& params, std::int64_t head, int frame_length,
                                      bool last_first = false, bool only_total = false)
      : p(params),
        head_index(head),
        log_decay(log_decay_of(params, head)),
        decays(params, log_decay, frame_length),
        backwards(last_first),
        total(only_total) {}

  // A Piece is one number or four; `elements` says which of a slot's, from `size` on: none. `sums`: what the first
  // segment starts from.
  template <int kBatch = 16, class Piece, int kColumns>  // segments whose loads are under way at once
  __device__ __forceinline__ void run(float* states, int size, const int (&elements)[kColumns],
                                      Piece (&sums)[kColumns]) const {
    Piece* slot = reinterpret_cast<Piece*>(states) + (head_index * p.slots + (backwards ? p.segments - 1 : 0)) * size;
    const int step = backwards ? -size : size;
    int past_start = backwards ? (p.segments - 1) % p.slot_step : 0;  // since a segment of the sweep started
    for (int base = 0; base < p.segments; base += kBatch) {
      Piece own[kColumns][kBatch];
#pragma unroll
      for (int column = 0; column < kColumns; ++column)
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          const bool summed = base + i + p.slot_step < p.segments || (total && base + i < p.segments);
          own[column][i] = summed && elements[column] < size ? slot[i * step + elements[column]] : Piece{};
        }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (base + i >= p.segments) break;
        const float decay = decays.of(backwards ? p.segments - 1 - base - i : base + i);
#pragma unroll
        for (int column = 0; column < kColumns; ++column) {
          if (!total && past_start == 0 && elements[column] < size) slot[elements[column]] = sums[column];
          sums[column] = multiply_add(decay, sums[column], own[column][i]);
        }
        past_start = backwards ? (past_start == 0 ? p.slot_step : past_start) - 1
                               : (past_start + 1 == p.slot_step ? 0 : past_start + 1);
        slot += step;
      }
    }
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
      if (total && elements[column] < size) slot[elements[column]] = sums[column];
    }
  }

  // Number `element` of what `segment` starts from, found from the sums; nothing is written.
  __device__ __forceinline__ float before(int segment, const float* states, int size, int element) const {
    const float* slot = states + head_index * p.slots * size + element;
    constexpr int kBatch = 16;
    float sum = 0.0F;
    for (int base = 0; base < segment; base += kBatch) {
      float own[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) own[i] = base + i < segment ? slot[i * size] : 0.0F;
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (base + i < segment) sum = multiply_add(decays.of(base + i), sum, own[i]);
      }
      slot += kBatch * size;
    }
    return sum;
  }
};

}  // namespace cosformer::kernels::cuda
