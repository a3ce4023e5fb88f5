// The sweep's tiles: fetched a chunk ahead and prepared.
#pragma once

#include "kernels/cuda/general/sweep.cuh"

namespace cosformer::kernels::cuda {

template <class Config>
__device__ __forceinline__ void Sweep<Config>::fetch(int stage, int position) {
  if constexpr (C::kAsync) {
    if constexpr (C::kInter) {
      fetch_tile<C, C::kFeatures>(tile(stage, C::kX), C::kFeaturePitch, rows_of(p.x, C::kXRows, 0), rows, position);
      if constexpr (C::kOwn) {
        fetch_tile<C, C::kValues>(tile(stage, C::kOwnTile), C::kValuePitch, rows_of(p.own, C::kOwnRows, first_value),
                                  rows, position);
      }
      if constexpr (C::kPrior) {
        if (p.normalised) {
          fetch_tile<C, C::kFeatures>(tile(0, C::kPriorTile), C::kFeaturePitch, rows_of(p.prior, C::kPriorRows, 0),
                                      rows, position);
        }
      }
    }
    if constexpr (C::kUpdate) {
      fetch_tile<C, C::kFeatures>(tile(stage, C::kY), C::kFeaturePitch, rows_of(p.y, C::kYRows, 0), columns, position);
      fetch_tile<C, C::kValues>(tile(stage, C::kZ), C::kValuePitch, rows_of(p.z, C::kZRows, first_value), columns,
                                position);
    }
    if constexpr (kRole != Role::kForward) {
      if (p.normalised) {
        float* raw = lasting(C::kRawDenominator + stage);
        const auto fetch_denominator = [&](int row) {
          const int token = queries().token_at(position + row);
          const bool valid = queries().has(token);
          copy_async<4>(shared_address(raw + row), p.denominator + (valid ? denominator_at(token) : 0), valid);
        };
        if constexpr (C::kScaledColumns) {
          if (threadIdx.x < kChunk) fetch_denominator(threadIdx.x);
        } else {  // by the first lane of the row's pieces, in the layout of the tile that is scaled with it
          constexpr int kWidth = kRole == Role::kValueGradient ? C::kValues : C::kFeatures;
          for_each_piece<C, kWidth>([&](int row, int column) {
            if (column == 0) fetch_denominator(row);
          });
        }
        if (kRole != Role::kQueryGradient && threadIdx.x < kChunk) {
          const int token = columns.token_at(position + threadIdx.x);
          const bool valid = columns.has(token);
          copy_async<4>(shared_address(lasting(C::kRawError + stage) + threadIdx.x),
                        p.row_scalar + (valid ? row_scalar_at(token) : 0), valid);
        }
      }
    }
    commit_copies();
  }
}

template <class Config>
__device__ __forceinline__ void Sweep<Config>::finish(int stage, int position) {
  const bool masked = p.key_mask != nullptr;
  if constexpr (C::kAsync) wait_copies<0>();
  __syncwarp();

  const auto everyone = [](int) { return true; };
  const auto present_query = [&](int token) { return queries().has(token); };
  const auto present_key = [&](int token) { return key_present(token); };
  const auto one = [](int, int) { return 1.0F; };
  const auto denominator = [&](int row, int token) {
    if constexpr (C::kAsync) return lasting(C::kRawDenominator + stage)[row];
    return queries().has(token) ? p.denominator[denominator_at(token)] : 0.0F;
  };
  const auto divisor = [&](int row, int token) { return p.normalised ? fmaxf(denominator(row, token), p.eps) : 1.0F; };
  const auto finish_x = [&]<Prepare kPrepare>(bool mask, auto present) {
    finish_tile<C, C::kFeatures, kPrepare>(tile(stage, C::kX), C::kFeaturePitch, rows_of(p.x, C::kXRows, 0), rows,
                                           position, p.feature_map, mask, present, one);
  };
  const auto finish_y = [&]<Prepare kPrepare>(bool mask, auto present, auto scale) {
    finish_tile<C, C::kFeatures, kPrepare>(tile(stage, C::kY), C::kFeaturePitch, rows_of(p.y, C::kYRows, 0), columns,
                                           position, p.feature_map, mask, present, scale);
  };
  const auto finish_z = [&]<Prepare kPrepare>(bool mask, auto present, auto scale) {
    finish_tile<C, C::kValues, kPrepare>(tile(stage, C::kZ), C::kValuePitch, rows_of(p.z, C::kZRows, first_value),
                                         columns, position, p.feature_map, mask, present, scale);
  };

  if constexpr (C::kInter) {
    if constexpr (kRole == Role::kForward) finish_x.template operator()<Prepare::kMap>(false, present_query);
    if constexpr (kRole == Role::kValueGradient) finish_x.template operator()<Prepare::kMap>(masked, present_key);
    if constexpr (C::kOwn) {
      finish_x.template operator()<Prepare::kPlain>(false, everyone);
      finish_tile<C, C::kValues, Prepare::kPlain>(tile(stage, C::kOwnTile), C::kValuePitch,
                                                  rows_of(p.own, C::kOwnRows, first_value), rows, position,
                                                  p.feature_map, false, everyone, one);
    }
    if constexpr (kRole == Role::kQueryGradient) {
      constexpr int kPieces = C::kFeatures / kPieceElements<Io>;
      constexpr int kLanes = kPieces < 32 ? kPieces : 32;
      const auto prior = rows_of(p.prior, C::kPriorRows, 0);
      const int group_lane = threadIdx.x % kLanes;
#pragma unroll
      for (int begin = 0; begin < kChunk; begin += C::kThreads / kLanes) {
        const int row = begin + threadIdx.x / kLanes;
        const int token = rows.token_at(position + row);
        float dot = 0.0F;
        if (p.normalised) {
#pragma unroll
          for (int piece = group_lane; piece < kPieces; piece += kLanes) {
            const int column = piece * kPieceElements<Io>;
            const Operand* x = tile(stage, C::kX) + row * C::kFeaturePitch + column;
            float now[kPieceElements<Io>], before[kPieceElements<Io>];
            if constexpr (C::kAsync) {
              unpack<Io>(now, x);
            } else {
#pragma unroll
              for (int i = 0; i < kPieceElements<Io>; ++i) now[i] = to_float(x[i]);
            }
            if constexpr (C::kPrior) {
              unpack<Io>(before, tile(0, C::kPriorTile) + row * C::kFeaturePitch + column);
            } else {
              load_piece<Io>(before, prior, token, column, rows.has(token));
            }
#pragma unroll
            for (int i = 0; i < kPieceElements<Io>; ++i) dot += now[i] * before[i];
          }
#pragma unroll
          for (int offset = kLanes / 2; offset > 0; offset /= 2) dot += __shfl_xor_sync(0xffffffffU, dot, offset);
        }
        if (group_lane == 0) {
          const float scale = C::kWide ? 1.0F / divisor(row, token) : __fdividef(1.0F, divisor(row, token));
          const float error = p.normalised && denominator(row, token) >= p.eps ? -dot : 0.0F;
          array(C::kRowError)[row] = error;
          array(C::kRowInverse)[row] = scale;
          if (p.normalised && slice == 0 && rows.has(token)) p.row_scalar[row_scalar_at(token)] = error * scale;
        }
      }
    }
  }
  if constexpr (C::kUpdate) {
    if constexpr (kRole == Role::kForward) {
      finish_y.template operator()<Prepare::kMap>(masked, present_key, one);
      finish_z.template operator()<Prepare::kMask>(masked, present_key, one);
    } else if constexpr (kRole == Role::kQueryGradient) {
      finish_y.template operator()<Prepare::kMask>(masked, present_key, one);
      finish_z.template operator()<Prepare::kMap>(masked, present_key, one);
    } else {
      constexpr Prepare kDivide = C::kScaledColumns ? Prepare::kPlain : Prepare::kScale;
      if constexpr (kRole == Role::kKeyGradient) {
        finish_y.template operator()<kDivide>(false, everyone, divisor);
        finish_z.template operator()<Prepare::kMap>(false, present_query, one);
      } else {
        finish_y.template operator()<Prepare::kMap>(false, present_query, one);
        finish_z.template operator()<kDivide>(false, everyone, divisor);
      }
    }
    if constexpr (kRole == Role::kKeyGradient || kRole == Role::kValueGradient) {
      const int r = threadIdx.x;
      if (r < kChunk) {
        float* error = lasting(C::kRawError + stage);
        if (!C::kAsync || !p.normalised) {
          const int token = columns.token_at(position + r);
          error[r] = p.normalised && columns.has(token) ? p.row_scalar[row_scalar_at(token)] : 0.0F;
        }
        array(C::kErrorCosine)[r] = error[r] * array(C::kSumCosine)[r];
        array(C::kErrorSine)[r] = error[r] * array(C::kSumSine)[r];
        if constexpr (C::kScaledColumns) {
          const float divided_by = divisor(r, columns.token_at(position + r));
          const float inverse = __fdividef(1.0F, divided_by);
          array(C::kRowInverse)[r] = inverse;
          array(C::kSumCosine)[r] *= inverse;
          array(C::kSumSine)[r] *= inverse;
          if constexpr (C::kExtraColumn) error[r] *= divided_by;  // its column is multiplied by the same weights
        }
      }
    }
  }
}

}  // namespace cosformer::kernels::cuda
