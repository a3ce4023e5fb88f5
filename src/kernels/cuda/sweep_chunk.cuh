// One chunk of the sweep: fetching and preparing its tiles, and the three products.
#pragma once

#include "kernels/cuda/sweep.cuh"

namespace cosformer::kernels::cuda {

template <class Config>
__device__ __forceinline__ void Sweep<Config>::fetch(int stage, int position) {
  if constexpr (C::kAsync) {
    const bool needs_rows = p.intra || p.inter, needs_columns = p.intra || p.update;
    if (needs_rows) {
      fetch_tile<C, C::kFeatures>(tile(stage, C::kX), C::kFeaturePitch, rows_of(p.x, C::kXRows, 0), rows, position);
      if constexpr (C::kOwn) {
        fetch_tile<C, C::kValues>(tile(stage, C::kOwnTile), C::kValuePitch, rows_of(p.own, C::kOwnRows, first_value),
                                  rows, position);
      }
      if constexpr (C::kPrior) {
        if (p.normalised) {
          fetch_tile<C, C::kFeatures>(tile(stage, C::kPriorTile), C::kFeaturePitch, rows_of(p.prior, C::kPriorRows, 0),
                                      rows, position);
        }
      }
    }
    if (needs_columns) {
      fetch_tile<C, C::kFeatures>(tile(stage, C::kY), C::kFeaturePitch, rows_of(p.y, C::kYRows, 0), columns,
                                  position);
      fetch_tile<C, C::kValues>(tile(stage, C::kZ), C::kValuePitch, rows_of(p.z, C::kZRows, first_value),
                                columns, position);
    }
    if constexpr (kRole != Role::kForward) {
      if (p.normalised) {
        // Fetched by the first lane of the row's pieces, in the layout of the tile that is scaled with it.
        constexpr int kWidth = kRole == Role::kValueGradient ? C::kValues : C::kFeatures;
        float* raw = array(C::kRawDenominator + stage);
        for_each_piece<C, kWidth>([&](int row, int column) {
          if (column != 0) return;
          const int token = queries().token_at(position + row);
          const bool valid = queries().has(token);
          copy_async_4(raw + row, p.denominator + (valid ? denominator_at(token) : 0), valid);
        });
        if (kRole != Role::kQueryGradient && threadIdx.x < kChunk) {
          const int token = columns.token_at(position + threadIdx.x);
          const bool valid = columns.has(token);
          copy_async_4(array(C::kRawError + stage) + threadIdx.x, p.row_scalar + (valid ? row_scalar_at(token) : 0),
                       valid);
        }
      }
    }
    copy_async_commit();
  }
}

template <class Config>
__device__ __forceinline__ void Sweep<Config>::finish(int stage, int position) {
  const bool needs_rows = p.intra || p.inter, needs_columns = p.intra || p.update;
  const bool masked = p.key_mask != nullptr;
  if constexpr (C::kAsync) copy_async_wait();
  __syncwarp();

  const auto everyone = [](int) { return true; };
  const auto present_query = [&](int token) { return queries().has(token); };
  const auto present_key = [&](int token) { return key_present(token); };
  const auto one = [](int, int) { return 1.0F; };
  const auto denominator = [&](int row, int token) {
    if constexpr (C::kAsync) return array(C::kRawDenominator + stage)[row];
    return queries().has(token) ? p.denominator[denominator_at(token)] : 0.0F;
  };
  const auto divisor = [&](int row, int token) {
    return p.normalised ? fmaxf(denominator(row, token), p.eps) : 1.0F;
  };
  const auto finish_x = [&]<Prepare kPrepare>(bool mask, auto present) {
    finish_tile<C, C::kFeatures, kPrepare>(tile(stage, C::kX), C::kFeaturePitch, rows_of(p.x, C::kXRows, 0), rows,
                                           position, p.feature_map, mask, present, one);
  };
  const auto finish_y = [&]<Prepare kPrepare>(bool mask, auto present, auto scale) {
    finish_tile<C, C::kFeatures, kPrepare>(tile(stage, C::kY), C::kFeaturePitch, rows_of(p.y, C::kYRows, 0),
                                           columns, position, p.feature_map, mask, present, scale);
  };
  const auto finish_z = [&]<Prepare kPrepare>(bool mask, auto present, auto scale) {
    finish_tile<C, C::kValues, kPrepare>(tile(stage, C::kZ), C::kValuePitch,
                                         rows_of(p.z, C::kZRows, first_value), columns, position, p.feature_map,
                                         mask, present, scale);
  };

  if (needs_rows) {
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
      for (int row = threadIdx.x / kLanes; row < kChunk; row += C::kThreads / kLanes) {
        const int token = rows.token_at(position + row);
        float dot = 0.0F;
        if (p.normalised) {
#pragma unroll
          for (int piece = group_lane; piece < kPieces; piece += kLanes) {
            const int column = piece * kPieceElements<Io>;
            const Operand* x = tile(stage, C::kX) + row * C::kFeaturePitch + column;
            float before[kPieceElements<Io>];
            if constexpr (C::kPrior) {
              unpack<Io>(before, tile(stage, C::kPriorTile) + row * C::kFeaturePitch + column);
            } else {
              load_piece<Io>(before, prior, token, column, rows.has(token));
            }
#pragma unroll
            for (int i = 0; i < kPieceElements<Io>; ++i) dot += to_float(x[i]) * before[i];
          }
#pragma unroll
          for (int offset = kLanes / 2; offset > 0; offset /= 2) dot += __shfl_xor_sync(0xffffffffU, dot, offset);
        }
        if (group_lane == 0) {
          const float scale = 1.0F / divisor(row, token);
          const float error = p.normalised && denominator(row, token) >= p.eps ? -dot : 0.0F;
          array(C::kRowError)[row] = error;
          array(C::kRowInverse)[row] = scale;
          if (p.normalised && slice == 0 && rows.has(token)) p.row_scalar[row_scalar_at(token)] = error * scale;
        }
      }
    }
  }
  if (needs_columns) {
    if constexpr (kRole == Role::kForward) {
      finish_y.template operator()<Prepare::kMap>(masked, present_key, one);
      finish_z.template operator()<Prepare::kMask>(masked, present_key, one);
    } else if constexpr (kRole == Role::kQueryGradient) {
      finish_y.template operator()<Prepare::kMask>(masked, present_key, one);
      finish_z.template operator()<Prepare::kMap>(masked, present_key, one);
    } else if constexpr (kRole == Role::kKeyGradient) {
      finish_y.template operator()<Prepare::kScale>(false, everyone, divisor);
      finish_z.template operator()<Prepare::kMap>(false, present_query, one);
    } else {
      finish_y.template operator()<Prepare::kMap>(false, present_query, one);
      finish_z.template operator()<Prepare::kScale>(false, everyone, divisor);
    }
    if constexpr (kRole == Role::kKeyGradient || kRole == Role::kValueGradient) {
      const int r = threadIdx.x;
      if (r < kChunk) {
        float* error = array(C::kRawError + stage);
        if (!C::kAsync || !p.normalised) {
          const int token = columns.token_at(position + r);
          error[r] = p.normalised && columns.has(token) ? p.row_scalar[row_scalar_at(token)] : 0.0F;
        }
        array(C::kErrorCosine)[r] = error[r] * array(C::kSumCosine)[r];
        array(C::kErrorSine)[r] = error[r] * array(C::kSumSine)[r];
      }
    }
  }
}

// Σ of the chunk's values weighted by the extra feature: both parts, for two value columns of the first four lanes.
template <class Config>
__device__ __forceinline__ void Sweep<Config>::extra_feature_sum(int stage, float (&sum)[2][2]) {
  float c[2][4] = {};
  const float* cosine = array(kRole == Role::kQueryGradient ? C::kSumCosine : C::kErrorCosine);
  const float* sine = array(kRole == Role::kQueryGradient ? C::kSumSine : C::kErrorSine);
#pragma unroll
  for (int k = 0; k < kChunk; k += C::kDepth) {
    const A a = Engine::rows_a(cosine, sine, k, lane);
    B b0, b1;
    Engine::load_b_transposed(b0, b1, tile(stage, C::kZ), C::kValuePitch, warp * 16, k, lane);
    Engine::multiply(c[0], a, b0);
    Engine::multiply(c[1], a, b1);
  }
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i) sum[n][i] = c[n][i] + __shfl_down_sync(0xffffffffU, c[n][i], 8);
}

// The chunk's own sum with nothing dropped of the weighted features, for a state that leaves.
template <class Config>
__device__ __forceinline__ void Sweep<Config>::precise_update(int stage) {
  const Operand* y = tile(stage, C::kY);
  const Operand* z = tile(stage, C::kZ);
#pragma unroll
  for (int m = 0; m < C::kStateTiles; ++m) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const float* weight = array(part == 0 ? C::kSumCosine : C::kSumSine);
      float sum[C::kStateColumns][4] = {};
#pragma unroll 1
      for (int step = 0; step < kChunk / C::kDepth * Engine::kParts; ++step) {
        const int k = step / Engine::kParts * C::kDepth;
        const A a = Engine::scaled_part(
            Engine::load_a_transposed(y, C::kFeaturePitch, state_row(m), k, lane), weight, k, lane,
            step % Engine::kParts);
#pragma unroll
        for (int n = 0; n < C::kSplitTiles; ++n) {
          Engine::multiply(sum[n], a, Engine::load_b1_transposed(z, C::kValuePitch, state_column(n), k, lane));
        }
        if constexpr (kRole == Role::kForward) Engine::multiply(sum[C::kSplitTiles], a, Engine::ones_b(lane));
      }
#pragma unroll
      for (int n = 0; n < C::kStateColumns; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) state[part][m][n][i] += sum[n][i];
    }
  }
}

template <class Config>
__device__ __forceinline__ void Sweep<Config>::compute(int stage, int position, double& decay_sum) {
  constexpr int kSteps = C::kFeatures / C::kDepth;
  constexpr int kStepsPer16 = 16 / C::kDepth;
  constexpr int kUnroll = C::kWide ? 1 : kSteps;  // wide products are long already
  constexpr bool kOnes = kRole == Role::kForward;
  const Operand* x = tile(stage, C::kX);
  const Operand* y = tile(stage, C::kY);
  const Operand* z = tile(stage, C::kZ);
  const Operand* own = tile(stage, C::kOwnTile);
  const int first_row = row_warp * 16;
  const int first_column = column_warp * C::kOutColumns;
  const bool rows_on = p.intra || p.inter;
  const bool wants_decay = C::kOwn && p.decay_gradient != nullptr;

  // Scores of these rows against the chunk's tokens up to them.
  typename Engine::Weights weights[kChunk / C::kDepth];
  if (p.intra) {
    float s[kChunk / 8][4] = {};
#pragma unroll kUnroll
    for (int k = 0; k < kSteps; ++k) {
      const A a = Engine::load_a(x, C::kFeaturePitch, first_row, k * C::kDepth, lane);
#pragma unroll
      for (int j = 0; j < kChunk / 16; ++j) {
        if (j > row_warp) continue;
        B b0, b1;
        Engine::load_b(b0, b1, y, C::kFeaturePitch, j * 16, k * C::kDepth, lane);
        Engine::multiply(s[2 * j], a, b0);
        Engine::multiply(s[2 * j + 1], a, b1);
      }
    }
    float distance_sum[2] = {};
    // Entry kChunk − Δ for this thread's first row and column, from the copy in which it is even.
    const float* distances =
        arrays + C::kDistance + (g % 2 == 0 ? 0 : C::kDistanceSize - 1) + kChunk - first_row - g + 2 * t;
    const float row_error[2] = {array(C::kRowError)[first_row + g], array(C::kRowError)[first_row + g + 8]};
    const float* column_error = array(C::kRawError + stage) + 2 * t;
#pragma unroll
    for (int j = 0; j < kChunk / 16; ++j) {
      if (j > row_warp) continue;
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& score = s[2 * j + n][i];
          if constexpr (kRole == Role::kQueryGradient) score += row_error[i / 2];
          if constexpr (kRole == Role::kKeyGradient) score += column_error[j * 16 + n * 8 + i % 2];
          const float2 weight = *reinterpret_cast<const float2*>(distances + j * 16 + n * 8 - (i / 2) * 8);
          score *= i % 2 == 0 ? weight.x : weight.y;
        }
      if constexpr (kRole == Role::kQueryGradient) {
        if (wants_decay) {  // Σ (i − j) w_ij (g_i·v_j + e_i) needs φ(q)·φ(k) too
          float similarity[2][4] = {};
#pragma unroll 1
          for (int k = 0; k < C::kValues / C::kDepth; ++k) {
            A a = Engine::load_a(own, C::kValuePitch, first_row, k * C::kDepth, lane);
            if (p.feature_map == FeatureMap::kRelu) {
              a = Engine::mapped(a, [](float q) { return fmaxf(q, 0.0F); });
            } else {
              a = Engine::mapped(a, [&](float q) { return map_forward(p.feature_map, q); });
            }
            B b0, b1;
            Engine::load_b(b0, b1, z, C::kValuePitch, j * 16, k * C::kDepth, lane);
            Engine::multiply(similarity[0], a, b0);
            Engine::multiply(similarity[1], a, b1);
          }
#pragma unroll
          for (int n = 0; n < 2; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              const int distance = first_row + g + (i / 2) * 8 - (j * 16 + n * 8 + 2 * t + i % 2);
              distance_sum[i / 2] += static_cast<float>(distance) * s[2 * j + n][i] * similarity[n][i];
            }
        }
      }
      Engine::pack_weights(weights + j * kStepsPer16, s[2 * j], s[2 * j + 1]);
    }
    if constexpr (kRole == Role::kQueryGradient) {
      if (wants_decay && column_warp == 0) {
        const float* inverse = array(C::kRowInverse) + first_row + g;
        decay_sum += static_cast<double>(distance_sum[0] * inverse[0]) + distance_sum[1] * inverse[8];
      }
    }
  }

  // Rows against the state that entered the chunk: γ^(a+1) (cos θi · x S_cos + sin θi · x S_sin).
  float out[C::kOutTiles + 1][4] = {};
  const float* row_cosine = array(C::kRowCosine) + first_row + g;
  const float* row_tangent = array(C::kRowTangent) + first_row + g;
  if (p.inter) {
#pragma unroll 1
    for (int part = 1; part >= 0; --part) {
      const Operand* s = state_tile + part * C::kStatePart;
#pragma unroll kUnroll
      for (int k = 0; k < kSteps; ++k) {
        const A a = Engine::load_a(x, C::kFeaturePitch, first_row, k * C::kDepth, lane);
#pragma unroll
        for (int n = 0; n + 1 < C::kOutTiles; n += 2) {
          B b0, b1;
          Engine::load_b_transposed(b0, b1, s, C::kStatePitch, first_column + n * 8, k * C::kDepth, lane);
          Engine::multiply(out[n], a, b0);
          Engine::multiply(out[n + 1], a, b1);
        }
        if constexpr (C::kOutTiles % 2 == 1) {
          Engine::multiply(out[C::kOutTiles - 1], a,
                           Engine::load_b1_transposed(s, C::kStatePitch, first_column + (C::kOutTiles - 1) * 8,
                                                      k * C::kDepth, lane));
        }
        if constexpr (kOnes) {
          Engine::multiply(out[C::kOutTiles], a,
                           Engine::load_b1_transposed(s, C::kStatePitch, C::kValues, k * C::kDepth, lane));
        }
      }
      if constexpr (C::kExtraFeature) {
        const float* extra = arrays + C::kExtraState + part * C::kValues + first_column;
        const float e0 = kRole == Role::kQueryGradient ? array(C::kRowError)[first_row + g] : 1.0F;
        const float e1 = kRole == Role::kQueryGradient ? array(C::kRowError)[first_row + g + 8] : 1.0F;
#pragma unroll
        for (int n = 0; n < C::kOutTiles; ++n) {
          const float2 value = *reinterpret_cast<const float2*>(extra + n * 8 + 2 * t);
          out[n][0] += e0 * value.x;
          out[n][1] += e0 * value.y;
          out[n][2] += e1 * value.x;
          out[n][3] += e1 * value.y;
        }
      }
      const float scale0 = part == 1 ? row_tangent[0] : row_cosine[0];
      const float scale1 = part == 1 ? row_tangent[8] : row_cosine[8];
#pragma unroll
      for (int n = 0; n < C::kOutTiles + 1; ++n) {
        out[n][0] *= scale0;
        out[n][1] *= scale0;
        out[n][2] *= scale1;
        out[n][3] *= scale1;
      }
    }
    if constexpr (C::kOwn) {
      if (wants_decay) {
        float dot[2] = {};
        const auto add_products = [&](auto map) {
#pragma unroll
          for (int n = 0; n < C::kOutTiles; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              const float2 raw = load_pair(own + (first_row + g + 8 * i) * C::kValuePitch + first_column + n * 8 + 2 * t);
              dot[i] += map(raw.x) * out[n][2 * i] + map(raw.y) * out[n][2 * i + 1];
            }
        };
        if (p.feature_map == FeatureMap::kRelu) {
          add_products([](float x) { return fmaxf(x, 0.0F); });
        } else {
          add_products([&](float x) { return map_forward(p.feature_map, x); });
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int row = first_row + g + i * 8;
          const int token = rows.token_at(position + row);
          const bool counts = kRole == Role::kKeyGradient ? key_present(token) : rows.has(token);
          const float scale = kRole == Role::kQueryGradient ? array(C::kRowInverse)[row] : 1.0F;
          if (counts) decay_sum += static_cast<double>(dot[i] * scale) * (p.reversed ? -token : token);
        }
      }
    }
  }

  // Scores times values, and the chunk's own sum into the state.
  if (p.update && p.log_decay != nullptr) {
    const float decay = arrays[C::kChunkDecay];
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int m = 0; m < C::kStateTiles; ++m)
#pragma unroll
        for (int n = 0; n < C::kStateColumns; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) state[part][m][n][i] *= decay;
  }
  const bool plain_update = p.update && !p.precise;
  if (p.update && p.precise) precise_update(stage);
  constexpr bool kFused = C::kColumnWarps == C::kStateSplit && C::kStateTiles == 1;  // same columns for both products
#pragma unroll
  for (int k = 0; k < kChunk / C::kDepth; ++k) {
    const bool scored = p.intra && k / kStepsPer16 <= row_warp;
    A cosine[C::kStateTiles], sine[C::kStateTiles];
    if (plain_update) {
#pragma unroll
      for (int m = 0; m < C::kStateTiles; ++m) {
        const A a = Engine::load_a_transposed(y, C::kFeaturePitch, state_row(m), k * C::kDepth, lane);
        cosine[m] = Engine::scaled(a, weight_array(0), k * C::kDepth, lane);
        sine[m] = Engine::scaled(a, weight_array(1), k * C::kDepth, lane);
      }
    }
#pragma unroll
    for (int n = 0; n < C::kSplitTiles; n += 2) {
      if (!plain_update && !(kFused && scored)) continue;
      B b0, b1;
      Engine::load_b_transposed(b0, b1, z, C::kValuePitch, state_column(n), k * C::kDepth, lane);
      if (plain_update) {
#pragma unroll
        for (int m = 0; m < C::kStateTiles; ++m) {
          Engine::multiply(state[0][m][n], cosine[m], b0);
          Engine::multiply(state[0][m][n + 1], cosine[m], b1);
          Engine::multiply(state[1][m][n], sine[m], b0);
          Engine::multiply(state[1][m][n + 1], sine[m], b1);
        }
      }
      if constexpr (kFused) {
        if (scored) {
          const A a = Engine::weights_a(weights[k]);
          Engine::multiply(out[n], a, b0);
          Engine::multiply(out[n + 1], a, b1);
        }
      }
    }
    if constexpr (!kFused) {
      if (scored) {
        const A a = Engine::weights_a(weights[k]);
#pragma unroll
        for (int n = 0; n < C::kOutTiles; ++n) {
          Engine::multiply(out[n], a,
                           Engine::load_b1_transposed(z, C::kValuePitch, first_column + n * 8, k * C::kDepth, lane));
        }
      }
    }
    if constexpr (kOnes) {
      if (scored) Engine::multiply(out[C::kOutTiles], Engine::weights_a(weights[k]), Engine::ones_b(lane));
    }
    if constexpr (C::kExtraColumn) {
      if (plain_update && (kOnes || p.store == StoreState::kOfSegment)) {
        const B b = kOnes ? Engine::ones_b(lane) : Engine::column_b(array(C::kRawError + stage), k * C::kDepth, lane);
#pragma unroll
        for (int m = 0; m < C::kStateTiles; ++m) {
          Engine::multiply(state[0][m][C::kSplitTiles], cosine[m], b);
          Engine::multiply(state[1][m][C::kSplitTiles], sine[m], b);
        }
      }
    }
  }
  if (rows_on) write_rows(stage, position, out);
}

}  // namespace cosformer::kernels::cuda
