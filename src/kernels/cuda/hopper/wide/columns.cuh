// The warpgroup that keeps the state of a wide head's slice.
#pragma once

#include "kernels/cuda/hopper/wide/layout.cuh"

namespace cosformer::kernels::cuda {

template <class L>
struct WideColumns : WideWarpgroup {
  float first[2][L::kFirstTiles][4], second[2][L::kSecondTiles][4];  // the two blocks of each part

  using WideWarpgroup::WideWarpgroup;

  template <class Visit>
  __device__ __forceinline__ void for_each_block(Visit visit) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      visit(part, 0, first[part]);
      visit(part, 1, second[part]);
    }
  }

  __device__ __forceinline__ void update(int stage) {
    const Io* weights = reinterpret_cast<const Io*>(shared + L::kWeights + stage * 256);
    const auto operand = [&](int tile) {
      return wgmma::descriptor(base + tile, L::kBlocks + L::block_piece(stage) * 16 - tile);
    };
    if constexpr (L::kFeatureRows) {
      const std::uint64_t values = operand(L::sliced(stage));
      const auto add = [&](int number, A(&features)[2][4], auto& of_parts) {
        weighed_features(features, base + L::contracted(stage, number), weights);
        wgmma::fence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
#pragma unroll
          for (int part = 0; part < 2; ++part)
            wgmma::multiply<true>(of_parts[part], features[part][k], wgmma::step_along_rows(values, k), true);
        wgmma::commit();
      };
      A of_first[2][4], of_second[2][4];
      add(0, of_first, first);
      add(1, of_second, second);
    } else {
      A features[2][4];
      weighed_features(features, base + L::sliced(stage), weights);
      const std::uint64_t low = operand(L::contracted(stage, 0)), high = operand(L::contracted(stage, 1));
      add_features(features, low, high, first, second);
    }
    wgmma::wait<0>();
    for_each_block([](int, int, auto& block) { wgmma::settle(block); });
  }

  __device__ __forceinline__ void publish(int copy) {
    for_each_block([&](int part, int number, auto& block) {
      publish_block(block, base + L::state_tile(copy, part, number), base + L::kStateExtras,
                    L::state_piece(copy, part, number));
    });
    wgmma::publish_shared();
    arrive(L::published(copy));
  }

  __device__ __forceinline__ void store_state() {
    float* to = slot_in(p.states, p.slots, p.total_slot);
    for_each_block([&](int part, int number, auto& block) {
      if constexpr (sizeof(block) == sizeof(float[9][4])) add_rests(block);
      store_block(block, to, part, L::feature_of(slice, number), L::value_of(slice, number),
                  !L::kFeatureRows || slice == 0);
    });
  }

  __device__ __forceinline__ void run() {
    locate<true, L::kRowsAreQueries>();
    const auto [begin, end, last_segment] = span();
    const float* from = initial_slot();
    for_each_block([&](int part, int number, auto& block) {
      load_block(block, from, part, L::feature_of(slice, number), L::value_of(slice, number));
    });
    clear_tile(L::kStateExtras);
    publish(0);
    int first_row = -1, last_row = -1;
    RingTurn<L::kStages> at;
    RingTurn<2> copy;
    for (int position = begin; position < end; position += kChunk) {
      if (p.log_decay != nullptr) {
        follow_powers(position, first_row, last_row);
        for_each_block([&](int, int, auto& block) { scale_block(block, chunk_decay); });
      }
      wait(L::full(at.stage), at.round);
      update(at.stage);
      arrive(L::free(at.stage));
      at.advance();
      copy.advance();
      if (copy.round > 0) wait(L::returned(copy.stage), copy.round - 1);
      publish(copy.stage);
    }
    if (p.store == StoreState::kFinal && last_segment) store_state();
  }
};

}  // namespace cosformer::kernels::cuda
