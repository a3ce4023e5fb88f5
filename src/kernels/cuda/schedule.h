// How a problem is cut into launches: padded dims, slices of value columns, segments of the sequence, workspace.
//
// Everything here is a function of shapes alone, so that results do not depend on the device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/launch_params.h"
#include "kernels/cuda/sweep_params.h"
#include "kernels/cuda/warpgroup_params.h"

namespace cosformer::kernels::cuda {

// The padded feature dim whose kernel serves `dim`, and the value columns that a block of it owns.
constexpr int padded_features(std::int64_t dim) {
  return dim <= 32 ? 32 : (dim <= 64 ? 64 : (dim <= 128 ? 128 : 256));
}
constexpr int value_slices(std::int64_t features_dim, std::int64_t values) {
  const int width = padded_features(features_dim) == 32 || padded_features(features_dim) == 256 ? 32 : 64;
  return static_cast<int>((values + width - 1) / width);
}

// The same of the warpgroup kernels.
constexpr int warpgroup_slices(std::int64_t values) {
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

// A joint launch of `blocks` blocks for a sequence: one segment more, the first of another length.
struct JointCut {
  int first, tokens;
};
// One block sweeps the first while the others sum theirs, so that neither waits long. In chunks of a sweep: a chunk's
// sum takes 0.5, and the first chunk of all 6.5 more, because the sweep's code comes from a memory that is busy.
inline JointCut joint_cut(std::int64_t length, int blocks) {
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

// Hands out pieces of the workspace; without memory it only counts.
class Workspace {
 public:
  explicit Workspace(void* memory) : memory_(static_cast<char*>(memory)) {}
  template <class T>
  T* take(std::int64_t count) {
    const std::size_t begin = used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + begin);
  }
  std::size_t used() const { return used_; }

 private:
  char* memory_;
  std::size_t used_ = 0;
};

struct Plan {
  bool two_sided = false;  // full attention with a decay: a scan from each side
  bool scans = false;      // causal or two-sided
  std::int64_t longest = 0;
  Segments state_cut;                          // of the sweeps with a running state
  int sums_per_segment = 1;                    // and how much finer the sums are cut that start their segments
  int key_sums_per_segment = 1;                // the same of the keys: the forward sweep may be cut that fine too
  Segments sum_cut_keys, sum_cut_queries;      // full attention: of the sums over all keys, all queries
  Segments apply_cut_queries, apply_cut_keys;  // and of the rows that use them
  int slots_keys = 0, slots_queries = 0;
  std::int64_t slot_floats = 0;
  std::int64_t query_rows = 0;
  bool state_slots = false;  // the forward's running sweep starts from or ends in a slot
  bool hands_over = false;   // the forward's slots serve the backward pass too
  // How many of a head.
  int handed_sums() const { return !hands_over ? 0 : (scans ? slots_keys : 1); }
};

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

// The forward sweep of wide heads has no slices: how many of its segments are one of the other sweeps', which have.
inline int whole_per_segment(const Segments& segments, std::int64_t heads) {
  const bool finer = segments.count > 1 && 2 * segments.count * heads <= kWantedWideBlocks;
  return finer && segments.tokens % (2 * kFrameBlock) == 0 ? 2 : 1;
}

inline Plan make_plan(const Problem& p) {
  Plan plan;
  plan.two_sided = !p.causal && p.log_decay != nullptr;
  plan.scans = p.causal || plan.two_sided;
  plan.longest = std::max(p.q_length, p.k_length);
  plan.slot_floats = state_floats(p);
  plan.query_rows = p.cu_seqlens_q == nullptr ? p.sequences * p.q_length : p.total_q;
  const std::int64_t heads = p.sequences * p.heads;
  const std::int64_t blocks = heads * std::min(value_slices(p.dim, p.value_dim), value_slices(p.value_dim, p.dim));
  const bool narrow = narrow_shape(p), wide = warpgroup_shape(p) && !narrow;
  if (plan.scans) {
    plan.state_cut = cut(plan.longest, blocks, wide ? kWantedWideBlocks : kWantedBlocks, 256);
    plan.sums_per_segment = wide ? sums_per_segment(plan.state_cut, heads, kWantedWideBlocks, 4)
                                 : sums_per_segment(plan.state_cut, blocks, kWantedBlocks, 2);
    plan.key_sums_per_segment = wide && p.causal ? whole_per_segment(plan.state_cut, heads) : plan.sums_per_segment;
    plan.slots_keys = plan.slots_queries =
        plan.state_cut.count * std::max(plan.sums_per_segment, plan.key_sums_per_segment) + 1;
    plan.hands_over = p.causal && plan.state_cut.count > 1;
  } else {
    plan.sum_cut_keys = cut(p.k_length, blocks, kWantedBlocks, 512);  // two suffice to keep the memory busy
    // Where the warpgroup kernels may serve, narrow heads sum the queries beside their gradient, in heavier blocks.
    plan.sum_cut_queries = cut(p.q_length, blocks, narrow ? kWantedBlocks : kWantedLightBlocks, 512);
    plan.apply_cut_queries = cut(p.q_length, blocks, kWantedLightBlocks, 512);
    plan.apply_cut_keys = cut(p.k_length, blocks, kWantedLightBlocks, 512);
    plan.slots_keys = plan.sum_cut_keys.count == 1 ? 1 : plan.sum_cut_keys.count + 1;
    plan.slots_queries = plan.sum_cut_queries.count == 1 ? 1 : plan.sum_cut_queries.count + 1;
    plan.hands_over = true;
  }
  plan.state_slots = p.state_kv_in != nullptr || p.state_kv_out != nullptr;
  return plan;
}

// The same for the sweep over both sides: pairs of chunks, in blocks that fill a multiprocessor, and as many sums as
// segments.
constexpr std::int64_t kPairTokens = 2 * kFrameBlock;
inline void plan_both_sides(Plan& plan, std::int64_t heads) {
  plan.state_cut = cut(plan.longest, heads, kWantedWideBlocks, 4 * kPairTokens, kPairTokens);
  plan.sums_per_segment = plan.key_sums_per_segment = 1;
  plan.slots_keys = plan.slots_queries = plan.state_cut.count;
}

}  // namespace cosformer::kernels::cuda
