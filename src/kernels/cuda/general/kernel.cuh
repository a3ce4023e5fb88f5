// The sweep's outer loop, its output rows, and its launch.
#pragma once

#include "kernels/cuda/general/products.cuh"
#include "kernels/cuda/launch.cuh"

namespace cosformer::kernels::cuda {

template <class Config>
__device__ __forceinline__ void Sweep<Config>::compute(int stage, int position, double& decay_sum) {
  typename Engine::Weights weights[kChunk / C::kDepth];
  float out[C::kOutTiles + 1][4] = {};
  A x[C::kKeptSteps];
  if constexpr (C::kInter && C::kKeepX) {
#pragma unroll
    for (int k = 0; k < C::kKeptSteps; ++k) {
      x[k] = Engine::load_a(Engine::tile_at(tile(stage, C::kX)), C::kFeaturePitch, row_warp * 16, k * C::kDepth, lane);
    }
  }
  HalfUnit row_unit[2] = {{1.0F, 1.0F}, {1.0F, 1.0F}};
  if constexpr (C::kIntra) score(stage, x, weights, row_unit, decay_sum);
  if constexpr (C::kInter) apply_state(stage, position, x, row_unit, out, decay_sum);
  if constexpr (C::kUpdate) {
    if (p.log_decay != nullptr) {
      const float decay = arrays[C::kChunkDecay + set];
#pragma unroll
      for (int part = 0; part < 2; ++part)
#pragma unroll
        for (int m = 0; m < C::kStateTiles; ++m)
#pragma unroll
          for (int n = 0; n < C::kStateColumns; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              state[part][m][n][i] *= decay;
              if constexpr (kCompensated) lost[part][m][n][i] *= decay;
            }
    }
    constexpr bool kFloat = sizeof(Io) == 4;
    if (kFloat || (kRole == Role::kForward && p.precise)) {
      precise_update(stage);
      if constexpr (C::kIntra) add_chunk<false, true>(stage, weights, out);
    } else if constexpr (!kFloat) {
      add_chunk<true, C::kIntra>(stage, weights, out);
    }
  }
  if constexpr (Engine::kNarrowRange && C::kIntra) {
#pragma unroll
    for (int n = 0; n < C::kOutTiles + 1; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) out[n][i] *= row_unit[i / 2].value;
  }
  if constexpr (C::kInter) write_rows(stage, position, out);
}

// Turns the accumulators of this warp's rows into results and writes them, through shared memory for whole sectors.
template <class Config>
__device__ __forceinline__ void Sweep<Config>::write_rows(int stage, int position, float (&out)[C::kOutTiles + 1][4]) {
  const int first_row = row_warp * 16;
  const int first_column = column_warp * C::kOutColumns;
  Io* const destination = static_cast<Io*>(p.destination) + extent.batch * p.destination_batch_stride +
                          rows.begin * static_cast<std::int64_t>(p.destination_time_stride) +
                          head * p.destination_head_stride + first_value + first_column;
  const int columns_left = p.destination_columns - first_value - first_column;

  float scale[2] = {1.0F, 1.0F};
  float divisor[2] = {1.0F, 1.0F};
  float before[2] = {1.0F, 1.0F};  // what the first of two sweeps divided by
  bool present[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = first_row + g + 8 * i;
    const int token = rows.token_at(position + row);
    present[i] = rows.has(token);
    if constexpr (kRole == Role::kForward) {
      float sum = __shfl_sync(0xffffffffU, out[C::kOutTiles][2 * i], g * 4);
      if (p.normalised && present[i]) {
        if (p.contribution == Contribution::kSecondOfTwo) {
          const float first = p.row_scalar[row_scalar_at(token)];
          before[i] = fmaxf(fabsf(first), p.eps);
          sum += first;
        }
        const bool writes = t == 0 && column_warp == 0 && slice == 0;
        if (p.contribution == Contribution::kFirstOfTwo) {
          if (writes) p.row_scalar[row_scalar_at(token)] = sum;
          divisor[i] = fmaxf(fabsf(sum), p.eps);
        } else {
          if (writes) p.denominator[denominator_at(token)] = sum;
          divisor[i] = fmaxf(sum, p.eps);
        }
        scale[i] = __fdividef(1.0F, divisor[i]);
      }
    }
    if constexpr (kRole == Role::kQueryGradient) scale[i] = array(C::kRowInverse)[row];
    if constexpr (kRole == Role::kKeyGradient) present[i] = key_present(token);
  }
  // Over the x of these rows, once the warps that share them have read it.
  Io* const staged = reinterpret_cast<Io*>(tile(stage, C::kX) + first_row * C::kFeaturePitch) + first_column;
  if constexpr (C::kColumnWarps == 1) {
    __syncwarp();
  } else {
    sync_named_barrier<32 * C::kColumnWarps>(1 + row_warp);
  }
  // What the first of two sweeps left in the destination.
  const auto earlier = [&](int i, int column) {
    const int token = rows.token_at(position + first_row + g + 8 * i);
    return present[i] && column < columns_left
               ? to_float(destination[static_cast<std::int64_t>(token) * p.destination_time_stride + column]) *
                     before[i]
               : 0.0F;
  };
  const auto stage_rows = [&](auto finished) {
#pragma unroll
    for (int n = 0; n < C::kOutTiles; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float2 value = finished(n, i);
        if (!present[i]) value = {0.0F, 0.0F};
        store_io_pair(staged + (g + 8 * i) * C::kOutPitch + n * 8 + 2 * t, value);
      }
  };
  const auto scaled = [&](int n, int i) {
    if constexpr (C::kWide && kRole == Role::kForward) {  // a division rounds once
      return make_float2(out[n][2 * i] / divisor[i], out[n][2 * i + 1] / divisor[i]);
    }
    return make_float2(out[n][2 * i] * scale[i], out[n][2 * i + 1] * scale[i]);
  };
  const bool second = p.contribution == Contribution::kSecondOfTwo;
  if constexpr (C::kOwn) {
    const Operand* own = tile(stage, C::kOwnTile) + (first_row + g) * C::kValuePitch + first_column + 2 * t;
    const auto with_slope = [&](auto slope) {
      return [&, slope](int n, int i) {
        const float2 raw = load_pair(own + 8 * i * C::kValuePitch + n * 8);
        float2 value = scaled(n, i);
        value.x *= slope(raw.x);
        value.y *= slope(raw.y);
        if (second) {
          value.x += earlier(i, n * 8 + 2 * t);
          value.y += earlier(i, n * 8 + 2 * t + 1);
        }
        return value;
      };
    };
    if (p.feature_map == FeatureMap::kRelu) {
      stage_rows(with_slope([](float x) { return x > 0.0F ? 1.0F : 0.0F; }));
    } else {
      stage_rows(with_slope([&](float x) { return map_derivative(p.feature_map, x); }));
    }
  } else {
    if (second) {
#pragma unroll
      for (int n = 0; n < C::kOutTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) out[n][i] += earlier(i / 2, n * 8 + 2 * t + i % 2);
    }
    stage_rows(scaled);
  }
  __syncwarp();
  constexpr int kPieces = C::kOutColumns / kPieceElements<Io>;
#pragma unroll
  for (int index = 0; index < 16 * kPieces; index += 32) {
    const int row = (index + lane) / kPieces, column = (index + lane) % kPieces * kPieceElements<Io>;
    const int token = rows.token_at(position + first_row + row);
    if (16 * kPieces % 32 != 0 && index + lane >= 16 * kPieces) continue;
    if (!rows.has(token) || column >= columns_left) continue;
    const Io* from = staged + row * C::kOutPitch + column;
    Io* to = destination + static_cast<std::int64_t>(token) * p.destination_time_stride + column;
    if (p.destination_aligned) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
      for (int i = 0; i < kPieceElements<Io> && column + i < columns_left; ++i) to[i] = from[i];
    }
  }
}

template <class Config>
__device__ __forceinline__ void Sweep<Config>::run() {
  locate();
  if (!C::kInter && p.frame == Frame::kBoth && segment + p.slot_step >= p.segments)
    return;  // nothing starts after them
  const int segment_begin = segment * p.segment_tokens;
  int position = max(segment_begin, lead / kChunk * kChunk);
  int end = min(segment_begin + p.segment_tokens, padded);
  if (!p.reversed) end = min(end, (frame_length + kChunk - 1) / kChunk * kChunk);
  const bool last_segment =
      segment_begin < padded ? segment_begin + p.segment_tokens >= padded : segment == 0 && padded == 0;
  double decay_sum = 0.0;

  load_state();
  if (position < end) {
    if constexpr (C::kInter) {
      measure_state();
      if constexpr (Engine::kNarrowRange) __syncthreads();
      publish_state();
    }
    fetch(0, position);
    if constexpr (C::kIntra) build_distances();
  }
  int first = -1, last = -1, stage = 0;
  bool first_chunk = true;
  for (; position < end; position += kChunk) {
    if constexpr (C::kUpdate) {
      const int chunk_first = max(lead - position, 0);
      const int chunk_last = p.reversed ? kChunk : min(kChunk, frame_length - position);
      if (chunk_first != first || chunk_last != last) {
        first = chunk_first;
        last = chunk_last;
        build_powers(first, last);
      }
    }
    build_angles(position, C::kUpdate, first_chunk);
    first_chunk = false;
    finish(stage, position);
    __syncthreads();
    if (position + kChunk < end) fetch((stage + 1) % C::kStages, position + kChunk);
    compute(stage, position, decay_sum);
    float extra[2][2];
    const bool sums_extra = C::kExtraFeature && C::kUpdate && warp < C::kValues / 16;
    if constexpr (C::kExtraFeature && C::kUpdate) {
      if (sums_extra) extra_feature_sum(stage, extra);
    }
    const float decay = arrays[C::kChunkDecay + set];
    if constexpr (C::kIntra) measure_state();
    if constexpr (!C::kOneBarrier) __syncthreads();
    if constexpr (C::kIntra) publish_state();
    if constexpr (C::kExtraFeature && C::kUpdate) {
      if (sums_extra) {
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float sine_sum = __shfl_down_sync(0xffffffffU, extra[n][i], 4);
            if (g == 0) {
              float* cosine = arrays + C::kExtraState + warp * 16 + n * 8 + 2 * t + i;
              float* sine = cosine + C::kValues;
              *cosine = decay * *cosine + extra[n][i];
              *sine = decay * *sine + sine_sum;
            }
          }
      }
    }
    stage = (stage + 1) % C::kStages;
    if constexpr (C::kOneBarrier) set = stage;
  }
  __syncthreads();
  if (p.store == StoreState::kOfSegment) store_state(segment);
  if (p.store == StoreState::kFinal && last_segment) store_state(p.total_slot);
  if (C::kOwn && p.decay_gradient != nullptr) {
    decay_sum = sum_over_warp(decay_sum);
    double* sums = reinterpret_cast<double*>(shared);
    if (lane == 0) sums[warp] = decay_sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 1; i < C::kWarps; ++i) decay_sum += sums[i];
      p.decay_gradient[blockIdx.x] = decay_sum;
    }
  }
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kMinBlocks)
    sweep_kernel(const __grid_constant__ SweepParams params) {
  COSFORMER_LAUNCHED_SHARED(shared, 128);
  Sweep<Config>(params, shared).run();
}

template <class Io, int kFeatures, Role kRole, Mode kMode>
cudaError_t launch_sweep(const SweepParams& params, cudaStream_t stream) {
  using Config = TileConfig<Io, kFeatures, kRole, kMode>;
  return launch_with_shared(nullptr, sweep_kernel<Config>, blocks_of(params), Config::kThreads, Config::kSharedBytes,
                            stream, params);
}

}  // namespace cosformer::kernels::cuda
