// How a sequence is cut into segments, and a head's columns into slices: functions of lengths and sizes alone. How many
// blocks are wanted is fixed (an H200's multiprocessors), whatever the device has. Which of these cuts serve a problem
// follows from its shapes and its family (make_plan in choice.cc); of a narrow head's cooperative launch, which there
// has to be room for on the device, cooperative_cut makes the segments.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/limits.h"

namespace cosformer::kernels::cuda {

// The padded feature dim whose general kernel serves `dim`, and the value columns that a block of it owns.
constexpr int padded_features(std::int64_t dim) {
  return dim <= 32 ? 32 : (dim <= 64 ? 64 : (dim <= 128 ? 128 : 256));
}
constexpr int value_slices(std::int64_t features_dim, std::int64_t values) {
  const int width = padded_features(features_dim) == 32 || padded_features(features_dim) == 256 ? 32 : 64;
  return static_cast<int>((values + width - 1) / width);
}

// The same of the Hopper kernels.
constexpr int hopper_slices(std::int64_t values) {
  return static_cast<int>((values + kNarrowDim - 1) / kNarrowDim);
}

struct Segments {
  int count = 1;
  int tokens = kFrameBlock;
};

// Blocks that a launch should have: two for each of an H200's 132 multiprocessors, three where they are light, one
// where a block fills it.
constexpr std::int64_t kWantedBlocks = 264;
constexpr std::int64_t kWantedLightBlocks = 396;
constexpr std::int64_t kWantedWideBlocks = 132;

// Cuts `length` positions so that about `wanted` blocks come together, each of `least` tokens or more, whole multiples
// of `unit`.
inline Segments cut(std::int64_t length, std::int64_t blocks_per_segment, std::int64_t wanted, std::int64_t least,
                    std::int64_t unit = kFrameBlock) {
  const std::int64_t padded = std::max<std::int64_t>((length + kFrameBlock - 1) / kFrameBlock, 1) * kFrameBlock;
  const std::int64_t parts = std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(blocks_per_segment, 1), 1,
                                                      std::max<std::int64_t>(padded / least, 1));
  const std::int64_t tokens = ((padded + parts - 1) / parts + unit - 1) / unit * unit;
  return {static_cast<int>((padded + tokens - 1) / tokens), static_cast<int>(tokens)};
}

// How much finer the sums are cut that the segments of a running sweep start from: as far as they fit in one round.
inline int sums_per_segment(const Segments& segments, std::int64_t blocks_per_segment, std::int64_t wanted, int most) {
  for (int finer = most; finer > 1; finer /= 2) {
    if (segments.count > 1 && finer * (segments.count - 1) * blocks_per_segment <= wanted &&
        segments.tokens % (finer * kFrameBlock) == 0) {
      return finer;
    }
  }
  return 1;
}

// The forward sweep that keeps its state in registers has no slices: how many of its segments are one of the other
// sweeps', which have.
inline int unsliced_per_segment(const Segments& segments, std::int64_t heads) {
  const bool finer = segments.count > 1 && 2 * segments.count * heads <= kWantedWideBlocks;
  return finer && segments.tokens % (2 * kFrameBlock) == 0 ? 2 : 1;
}

// A cooperative launch of `blocks` blocks for a sequence of a narrow head: one segment more, the first of another
// length.
struct CooperativeCut {
  int first, tokens;
};
// One block sweeps the first while the others sum theirs, so that neither waits long. In chunks of a sweep: a chunk's
// sum takes 0.5, and the first chunk of all 6.5 more, because the sweep's code comes from a memory that is busy.
inline CooperativeCut cooperative_cut(std::int64_t length, int blocks) {
  constexpr double kSum = 0.5, kFarCode = 6.5;
  const int chunks = static_cast<int>((length + kFrameBlock - 1) / kFrameBlock);
  const auto first_of = [&](int each) { return chunks - blocks * each; };
  const auto time_of = [&](int each) { return std::max(kSum * each, kFarCode + first_of(each)) + each; };
  int best = chunks / (blocks + 1);
  for (int each = best + 1; first_of(each) > 0; ++each) {
    if (time_of(each) < time_of(best)) best = each;
  }
  return {first_of(best) * kFrameBlock, best * kFrameBlock};
}

}  // namespace cosformer::kernels::cuda
