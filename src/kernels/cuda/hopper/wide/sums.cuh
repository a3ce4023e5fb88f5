// Sums over the columns of wide heads: the state that a segment adds, all of it by one block.
//
// Three warpgroups. One fetches chunks and makes the columns' weights; each of the others sums 64 features by both
// blocks of values. Features go to the products through registers, where ReLU, the angles' and decays' factors and, of
// queries, the division by the denominators are applied. Barriers in shared memory lie between the three, so that the
// products of one run while the other makes its operands.
//
// Where all blocks are on the device at the same time (HopperParams::scan_sums), they wait for each other and turn
// the sums into what each segment starts from, a share of the numbers each.
#pragma once

#include <cooperative_groups.h>

#include "kernels/cuda/hopper/wide/layout.cuh"
#include "kernels/cuda/plan/slot_scan.cuh"

namespace cosformer::kernels::cuda {

template <bool kOfQueries_, bool kMasked_>
struct WideSumLayout {
  static constexpr bool kOfQueries = kOfQueries_, kMasked = kMasked_ && !kOfQueries_;
  static constexpr int kThreads = 384, kMinBlocks = 1;
  static constexpr int kProducerRegisters = 64, kSumRegisters = 216;
  static_assert(kProducerRegisters + 2 * kSumRegisters <= 65536 / kThreads / 8 * 8 * 3);

  // Shared memory: stages (two tiles of features, two of values), the extra column (ones, or e with a piece for each
  // stage), and for each stage the columns' weights, and of queries denominators and e.
  static constexpr int kTile = HopperPlace::kTile, kChunk = HopperPlace::kChunk;
  static constexpr int kStages = 6;
  static constexpr int kExtras = kStages * 4 * kTile;
  static constexpr int kWeights = kExtras + kTile;
  static constexpr int kAngles = kWeights + kStages * 256;
  static constexpr int kDenominators = kAngles + HopperPlace::kAngleBytes;
  static constexpr int kErrors = kDenominators + (kOfQueries ? kStages * kChunk * 4 : 0);
  static constexpr int kBarriers = kErrors + (kOfQueries ? kStages * kChunk * 4 : 0);
  static constexpr int kSharedBytes = kBarriers + 2 * kStages * 8;
  static_assert(kStages <= 8 && kAngles % 16 == 0 && kBarriers % 16 == 0 && kSharedBytes + 1024 <= 233472);
  static_assert(2 * (kSharedBytes + 1024) > 233472);  // choice.cc: a block fills a multiprocessor

  static constexpr __device__ int feature_tile(int stage, int block) { return (stage * 4 + block) * kTile; }
  static constexpr __device__ int value_tile(int stage, int block) { return (stage * 4 + 2 + block) * kTile; }
  static constexpr __device__ int extra_piece(int stage) { return kOfQueries ? stage : 0; }
  static constexpr __device__ int weights(int stage) { return kWeights + stage * 256; }
  static constexpr __device__ int full(int stage) { return kBarriers + stage * 8; }
  static constexpr __device__ int free(int stage) { return kBarriers + (kStages + stage) * 8; }
};

// What the warpgroups share.
struct WideSum : WideWarpgroup {
  using WideWarpgroup::WideWarpgroup;

  // The head's blocks scan `pieces` pieces of the slots from `begin` on, kThreads of each block.
  template <class Piece, int kColumns, int kThreads>
  __device__ __forceinline__ void scan_share(int begin, int pieces, int thread) {
    constexpr int kFloats = sizeof(Piece) / sizeof(float);
    const int size = 2 * p.dim * (p.value_dim + 1) / kFloats, threads = p.segments * kThreads;
    const SlotScan scan(p, static_cast<std::int64_t>(sequence) * p.heads + head, frame_length);
    for (int first = segment * kThreads + thread; first < pieces; first += kColumns * threads) {
      int elements[kColumns];
      Piece sums[kColumns] = {};
#pragma unroll
      for (int column = 0; column < kColumns; ++column) {
        const int number = first + column * threads;
        elements[column] = number < pieces ? begin + number : size;
      }
      scan.template run<kFloats == 1 ? 8 : 16>(p.states, size, elements, sums);
    }
  }
  // What this segment starts from in the extra column.
  __device__ __forceinline__ float extra_before(int number) {
    const SlotScan scan(p, static_cast<std::int64_t>(sequence) * p.heads + head, frame_length);
    return scan.before(segment, p.states, 2 * p.dim * (p.value_dim + 1), 2 * p.dim * p.value_dim + number);
  }
  __device__ __forceinline__ float* own_extras() {
    return slot_in(p.states, p.slots, segment) + 2 * p.dim * p.value_dim;
  }
  // Of the matrices, by the two warpgroups that sum. The extra column, which is short, goes number by number through
  // the one that has few registers.
  __device__ __forceinline__ void scan_matrices() {
    scan_share<float4, 2, 256>(0, p.dim * p.value_dim / 2, static_cast<int>(threadIdx.x) - 128);
  }
  __device__ __forceinline__ void scan_extras() {
    scan_share<float, 1, 128>(2 * p.dim * p.value_dim, 2 * p.dim, static_cast<int>(threadIdx.x));
  }
};

template <class L>
struct WideSumProducer : WideSum {
  using WideSum::WideSum;
  const Io *feature_rows, *value_rows;

  __device__ __forceinline__ const TileSource& features() const { return L::kOfQueries ? w.q : w.k; }
  __device__ __forceinline__ const TileSource& values() const { return L::kOfQueries ? w.dout : w.v; }

  __device__ __forceinline__ void fetch(int stage, int position) {
    const unsigned seen = present_keys<L::kMasked>(position);
    const auto fetch_both = [&](int tile, const Io*& rows, const TileSource& source) {
      const Io* beside = rows + 64;
      fetch_tile<L::kMasked, true>(base + tile, rows, source, 0, column_length, seen, position);
      fetch_tile<L::kMasked, true>(base + tile + kTile, beside, source, 64, column_length, seen, position);
    };
    fetch_both(L::feature_tile(stage, 0), feature_rows, features());
    fetch_both(L::value_tile(stage, 0), value_rows, values());
    if (L::kOfQueries && p.normalised) {
      fetch_row_numbers<true>(floats(L::kDenominators, stage), floats(L::kErrors, stage), position);
    }
  }

  // Of queries: what divides this lane's column; and e becomes the extra column.
  __device__ __forceinline__ float prepare_column(int stage) {
    if (!L::kOfQueries || !p.normalised) return 1.0F;
    const int row = warp * 16 + lane % 16;
    const float s = fmaxf(floats(L::kDenominators, stage)[row], p.eps);
    if (lane < 16) {
      set_extra(shared + L::kExtras, L::extra_piece(stage), row, floats(L::kErrors, stage)[row] * s);
    }
    return __fdividef(1.0F, s);
  }

  __device__ __forceinline__ void run() {
    sum();
    if (!w.scan_sums) return;
    cooperative_groups::this_grid().sync();
    scan_extras();
  }

  __device__ __forceinline__ void sum() {
    if (!place_sum<L::kOfQueries>()) return;
    const auto chunks = span();
    const auto chunk = [&](int at) { return chunks.chunk<true>(at); };
    const int begin = chunks.begin, end = chunks.end;
    const int first_token = L::kOfQueries ? q_begin : k_begin;
    feature_rows = rows_of(features(), first_token, chunk(begin), 0);
    value_rows = rows_of(values(), first_token, chunk(begin), 0);
    for (int i = 0; i < L::kStages - 1; ++i) {
      if (begin + i * kChunk < end) fetch(i, chunk(begin + i * kChunk));
      commit_copies();  // a group in any case: waiting counts groups
    }
    take_angles();
    keep_angles<true>(shared + L::kAngles);
    clear_tile(L::kExtras);
    if (!L::kOfQueries && threadIdx.x < kChunk) set_one(shared + L::kExtras, 0, static_cast<int>(threadIdx.x));
    int first_row = -1, last_row = -1;
    RingTurn<L::kStages> ring;
    for (int at = begin; at < end; at += kChunk) {
      const int position = chunk(at), stage = ring.stage, before = stage == 0 ? L::kStages - 1 : stage - 1;
      follow_powers(position, first_row, last_row);
      wait_copies<L::kStages - 2>();
      __syncwarp();  // what other lanes copied
      set_turns<true, false, Decays::kShrink>(position, at == begin, shared + L::kAngles,
                                              reinterpret_cast<Io*>(shared + L::weights(stage)), nullptr,
                                              prepare_column(stage));
      wgmma::publish_shared();
      arrive(L::full(stage));
      const int next = at + (L::kStages - 1) * kChunk;
      if (next < end) {
        if (at > begin) wait(L::free(before), ring.round - (stage == 0 ? 1 : 0));
        fetch(before, chunk(next));
      }
      commit_copies();
      ring.advance();
    }
  }
};

template <class L>
struct WideSummer : WideSum {
  using WideSum::WideSum;
  float first[2][9][4], second[2][8][4];  // the two blocks of values, of each part

  __device__ __forceinline__ void add(int stage, const A (&parts)[2][4]) {
    const int tile = L::value_tile(stage, 0);
    const std::uint64_t low = wgmma::descriptor(base + tile, L::kExtras + L::extra_piece(stage) * 16 - tile);
    const std::uint64_t high = wgmma::descriptor(base + L::value_tile(stage, 1));
    add_features(parts, low, high, first, second);
  }

  // Features from 64·block on.
  __device__ __forceinline__ void run(int block) {
    sum(block);
    if (!w.scan_sums) return;
    cooperative_groups::this_grid().sync();
    scan_matrices();
  }

  __device__ __forceinline__ void sum(int block) {
    if (!place_sum<L::kOfQueries>()) return;
    const auto [begin, end, last_segment] = span();
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      clear_block(first[part]);
      clear_block(second[part]);
    }
    A raw[2][2];
    RingTurn<L::kStages> at;
    const auto begin_chunk = [&] {
      wait(L::full(at.stage), at.round);
      load_raw_features(raw, base + L::feature_tile(at.stage, block));
    };
    if (begin < end) begin_chunk();
    for (int position = begin; position < end; position += kChunk) {
      const int stage = at.stage;
      const Io* weights = reinterpret_cast<const Io*>(shared + L::weights(stage));
      A parts[2][4];
      weigh_features(parts, raw[0], weights, 0);
      weigh_features(parts, raw[1], weights, 2);
      add(stage, parts);
      at.advance();
      if (position + kChunk < end) begin_chunk();
      wgmma::wait<0>();
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        wgmma::settle(first[part]);
        wgmma::settle(second[part]);
      }
      arrive(L::free(stage));
    }
    float* const to = slot_in(p.states, p.slots, segment);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      add_rests(first[part]);
      store_block(first[part], to, part, block * 64, 0);
      store_block(second[part], to, part, block * 64, 64);
    }
  }
};

}  // namespace cosformer::kernels::cuda
