// The sweep's products on one chunk: scores, rows against the state, scores times values, and the chunk's own sum.
#pragma once

#include "kernels/cuda/general/load.cuh"

namespace cosformer::kernels::cuda {

// Σ of the chunk's values weighted by the extra feature: both parts, for two value columns of the first four lanes.
template <class Config>
__device__ __forceinline__ void Sweep<Config>::extra_feature_sum(int stage, float (&sum)[2][2]) {
  float c[2][4] = {};
  const float* cosine = array(kRole == Role::kQueryGradient ? C::kSumCosine : C::kErrorCosine);
  const float* sine = array(kRole == Role::kQueryGradient ? C::kSumSine : C::kErrorSine);
  const Tile z = Engine::tile_at(tile(stage, C::kZ));
#pragma unroll
  for (int k = 0; k < kChunk; k += C::kDepth) {
    const auto a = Engine::rows_a(cosine, sine, k, lane);
    B b0, b1;
    Engine::load_b_transposed(b0, b1, z, C::kValuePitch, warp * 16, k, lane);
    Engine::multiply(c[0], a, b0);
    Engine::multiply(c[1], a, b1);
  }
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i) sum[n][i] = c[n][i] + __shfl_down_sync(0xffffffffU, c[n][i], 8);
}

// The column beyond the values: ones, or the rows' errors.
template <class Config>
__device__ __forceinline__ auto Sweep<Config>::extra_column(int stage, int k) const {
  if constexpr (kRole == Role::kForward) {
    return Engine::ones_b(lane);
  } else {
    return Engine::column_b(lasting(C::kRawError + stage), k, lane);
  }
}

// The chunk's own sum with nothing dropped of the weighted features, added at once: for float data and for a state that
// leaves.
template <class Config>
__device__ __forceinline__ void Sweep<Config>::precise_update(int stage) {
  const Tile y = Engine::tile_at(tile(stage, C::kY));
  const Tile z = Engine::tile_at(tile(stage, C::kZ));
#pragma unroll
  for (int m = 0; m < C::kStateTiles; ++m) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const float* weight = array(part == 0 ? C::kSumCosine : C::kSumSine);
      float sum[C::kStateColumns][4] = {};
#pragma unroll 1
      for (int step = 0; step < kChunk / C::kDepth * Engine::kParts; ++step) {
        const int k = step / Engine::kParts * C::kDepth;
        const auto a = Engine::scaled_part(Engine::load_a_transposed(y, C::kFeaturePitch, state_row(m), k, lane),
                                           weight, k, lane, step % Engine::kParts);
        // The unit cuts off what its accumulator cannot hold: every step starts from zero and is added with rounding.
        const auto add = [&](int n, const auto& b) {
          float product[4] = {};
          Engine::multiply(product, a, b);
#pragma unroll
          for (int i = 0; i < 4; ++i) sum[n][i] += product[i];
        };
#pragma unroll
        for (int n = 0; n < C::kSplitTiles; ++n) {
          add(n, Engine::load_b1_transposed(z, C::kValuePitch, state_column(n), k, lane));
        }
        if constexpr (C::kExtraColumn) add(C::kSplitTiles, extra_column(stage, k));
      }
#pragma unroll
      for (int n = 0; n < C::kStateColumns; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& total = state[part][m][n][i];
          if constexpr (kCompensated) {
            const float addend = sum[n][i] - lost[part][m][n][i];
            const float next = __fadd_rn(total, addend);
            lost[part][m][n][i] = __fsub_rn(__fsub_rn(next, total), addend);
            total = next;
          } else {
            total += sum[n][i];
          }
        }
    }
  }
}

// Weights c_ij (x_i·y_j) of this warp's rows against the chunk's tokens. 16-bit products run over the whole chunk, the
// table being zero behind the diagonal: straight code is worth more than the products it could skip.
template <class Config>
__device__ __forceinline__ void Sweep<Config>::score(int stage, const A (&x_kept)[C::kKeptSteps],
                                                     typename Engine::Weights (&weights)[kChunk / C::kDepth],
                                                     HalfUnit (&row_unit)[2], double& decay_sum) {
  constexpr int kSteps = C::kFeatures / C::kDepth;
  constexpr int kUnroll = C::kWide ? 1 : kSteps;  // wide products are long already
  const Tile x = Engine::tile_at(tile(stage, C::kX));
  const Tile y = Engine::tile_at(tile(stage, C::kY));
  const int first_row = row_warp * 16;
  float s[kChunk / 8][4] = {};
#pragma unroll kUnroll
  for (int k = 0; k < kSteps; ++k) {
    const A a =
        C::kKeepX ? x_kept[C::kKeepX ? k : 0] : Engine::load_a(x, C::kFeaturePitch, first_row, k * C::kDepth, lane);
#pragma unroll
    for (int j = 0; j < kChunk / 16; ++j) {
      if (C::kWide && j > row_warp) continue;
      B b0, b1;
      Engine::load_b(b0, b1, y, C::kFeaturePitch, j * 16, k * C::kDepth, lane);
      Engine::multiply(s[2 * j], a, b0);
      Engine::multiply(s[2 * j + 1], a, b1);
    }
  }
  // Entry kChunk − Δ for this thread's first row and column, from the copy in which it is even.
  const float* distances =
      arrays + C::kDistance + (g % 2 == 0 ? 0 : C::kDistanceSize - 1) + kChunk - first_row - g + 2 * t;
  const float* column_error = lasting(C::kRawError + stage) + 2 * t;
  const float row_error[2] = {array(C::kRowError)[first_row + g], array(C::kRowError)[first_row + g + 8]};
#pragma unroll
  for (int n = 0; n < kChunk / 8; ++n) {
    float2 error = {0.0F, 0.0F};
    if constexpr (kRole == Role::kKeyGradient) error = load_pair(column_error + n * 8);
    if constexpr (C::kScaledColumns) {
      const float2 inverse = load_pair(array(C::kRowInverse) + n * 8 + 2 * t);
#pragma unroll
      for (int i = 0; i < 4; ++i) s[n][i] *= i % 2 == 0 ? inverse.x : inverse.y;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (kRole == Role::kQueryGradient) error = {row_error[i], row_error[i]};
      const float2 weight = load_pair(distances + n * 8 - i * 8);
      if constexpr (C::kExtraFeature) {
        s[n][2 * i] += error.x;
        s[n][2 * i + 1] += error.y;
      }
      s[n][2 * i] *= weight.x;
      s[n][2 * i + 1] *= weight.y;
    }
  }
  if constexpr (kRole == Role::kQueryGradient) {
    if (p.decay_gradient != nullptr && column_warp == 0) {  // Σ (i − j) w_ij (g_i·v_j + e_i) needs φ(q)·φ(k) too
      const Tile own = Engine::tile_at(tile(stage, C::kOwnTile));
      const Tile z = Engine::tile_at(tile(stage, C::kZ));
      const bool relu = p.feature_map == FeatureMap::kRelu;
      float sum[2] = {};
#pragma unroll
      for (int j = 0; j < kChunk / 16; ++j) {
        if (j > row_warp) continue;
        float similarity[2][4] = {};
#pragma unroll 1
        for (int k = 0; k < C::kValues / C::kDepth; ++k) {
          A a = Engine::load_a(own, C::kValuePitch, first_row, k * C::kDepth, lane);
          a = relu ? Engine::mapped(a, [](float q) { return fmaxf(q, 0.0F); })
                   : Engine::mapped(a, [&](float q) { return map_forward(p.feature_map, q); });
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
            sum[i / 2] += static_cast<float>(distance) * s[2 * j + n][i] * similarity[n][i];
          }
      }
      const float* inverse = array(C::kRowInverse) + first_row + g;
      decay_sum += static_cast<double>(sum[0] * inverse[0]) + sum[1] * inverse[8];
    }
  }
  if constexpr (Engine::kNarrowRange) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float largest = 0.0F;
#pragma unroll
      for (int n = 0; n < kChunk / 8; ++n) {
        largest = fmaxf(largest, fmaxf(fabsf(s[n][2 * i]), fabsf(s[n][2 * i + 1])));
      }
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 2));
      row_unit[i] = half_unit_of(largest);
#pragma unroll
      for (int n = 0; n < kChunk / 8; ++n) {
        s[n][2 * i] *= row_unit[i].inverse;
        s[n][2 * i + 1] *= row_unit[i].inverse;
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kChunk / 16; ++j) Engine::pack_weights(weights + j * (16 / C::kDepth), s[2 * j], s[2 * j + 1]);
}

// Rows against the state that entered the chunk: γ^(a+1) (cos θi · x S_cos + sin θi · x S_sin), in the rows' units.
template <class Config>
__device__ __forceinline__ void Sweep<Config>::apply_state(int stage, int position, const A (&x_kept)[C::kKeptSteps],
                                                           const HalfUnit (&row_unit)[2],
                                                           float (&out)[C::kOutTiles + 1][4], double& decay_sum) {
  constexpr int kSteps = C::kFeatures / C::kDepth;
  constexpr int kUnroll = C::kWide ? 1 : (kSteps < 8 ? kSteps : 8);
  const Tile x = Engine::tile_at(tile(stage, C::kX));
  const int first_row = row_warp * 16, first_column = column_warp * C::kOutColumns;
  const float* row_cosine = array(C::kRowCosine) + first_row + g;
  const float* row_tangent = array(C::kRowTangent) + first_row + g;
  float kept[C::kOutTiles + 1][4] = {};  // wide: the sine part, where x S_sin tan θ + x S_cos would round too often
#pragma unroll
  for (int part = 1; part >= 0; --part) {
    const Tile s = Engine::tile_at(state_tile + part * C::kStatePart);
#pragma unroll kUnroll
    for (int k = 0; k < kSteps; ++k) {
      const A a =
          C::kKeepX ? x_kept[C::kKeepX ? k : 0] : Engine::load_a(x, C::kFeaturePitch, first_row, k * C::kDepth, lane);
#pragma unroll
      for (int n = 0; n + 1 < C::kOutTiles; n += 2) {
        B b0, b1;
        Engine::load_b_transposed(b0, b1, s, C::kStatePitch, first_column + n * 8, k * C::kDepth, lane);
        Engine::multiply(out[n], a, b0);
        Engine::multiply(out[n + 1], a, b1);
      }
      if constexpr (C::kOutTiles % 2 == 1) {
        Engine::multiply(
            out[C::kOutTiles - 1], a,
            Engine::load_b1_transposed(s, C::kStatePitch, first_column + (C::kOutTiles - 1) * 8, k * C::kDepth, lane));
      }
      if constexpr (kRole == Role::kForward) {
        Engine::multiply(out[C::kOutTiles], a,
                         Engine::load_b1_transposed(s, C::kStatePitch, C::kValues, k * C::kDepth, lane));
      }
    }
    if constexpr (C::kExtraFeature) {
      const float* extra = arrays + C::kExtraState + part * C::kValues + first_column + 2 * t;
      float e0 = kRole == Role::kQueryGradient ? array(C::kRowError)[first_row + g] : 1.0F;
      float e1 = kRole == Role::kQueryGradient ? array(C::kRowError)[first_row + g + 8] : 1.0F;
      if constexpr (Engine::kNarrowRange) {
        const float inverse = inverse_of_unit(state_unit);
        e0 *= inverse;
        e1 *= inverse;
      }
#pragma unroll
      for (int n = 0; n < C::kOutTiles; ++n) {
        const float2 value = load_pair(extra + n * 8);
        out[n][0] += e0 * value.x;
        out[n][1] += e0 * value.y;
        out[n][2] += e1 * value.x;
        out[n][3] += e1 * value.y;
      }
    }
    float scale0 = part == 1 ? row_tangent[0] : row_cosine[0];
    float scale1 = part == 1 ? row_tangent[8] : row_cosine[8];
    if constexpr (Engine::kNarrowRange) {
      if (part == 0) {
        scale0 *= state_unit * row_unit[0].inverse;
        scale1 *= state_unit * row_unit[1].inverse;
      }
    }
#pragma unroll
    for (int n = 0; n < C::kOutTiles + 1; ++n) {
      out[n][0] *= scale0;
      out[n][1] *= scale0;
      out[n][2] *= scale1;
      out[n][3] *= scale1;
      if constexpr (C::kWide) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (part == 1) {
            kept[n][i] = out[n][i];
            out[n][i] = 0.0F;
          } else {
            out[n][i] += kept[n][i];
          }
        }
      }
    }
  }
  if constexpr (C::kOwn && C::kIntra) {
    if (p.decay_gradient != nullptr) {
      const Operand* own = tile(stage, C::kOwnTile) + (first_row + g) * C::kValuePitch + first_column + 2 * t;
      float dot[2] = {};
      const auto add_products = [&](auto map) {
#pragma unroll
        for (int n = 0; n < C::kOutTiles; ++n)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float2 raw = load_pair(own + 8 * i * C::kValuePitch + n * 8);
            dot[i] += map(raw.x) * out[n][2 * i] + map(raw.y) * out[n][2 * i + 1];
          }
      };
      if (p.feature_map == FeatureMap::kRelu) {
        add_products([](float q) { return fmaxf(q, 0.0F); });
      } else {
        add_products([&](float q) { return map_forward(p.feature_map, q); });
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = first_row + g + i * 8;
        const int token = rows.token_at(position + row);
        const bool counts = kRole == Role::kKeyGradient ? key_present(token) : rows.has(token);
        float scale = kRole == Role::kQueryGradient ? array(C::kRowInverse)[row] : 1.0F;
        if constexpr (Engine::kNarrowRange) scale *= row_unit[i].value;
        if (counts) decay_sum += static_cast<double>(dot[i] * scale) * (p.reversed ? -token : token);
      }
    }
  }
}

// Scores times values, and the chunk's own sum into the state.
template <class Config>
template <bool kSums, bool kScores>
__device__ __forceinline__ void Sweep<Config>::add_chunk(int stage,
                                                         const typename Engine::Weights (&weights)[kChunk / C::kDepth],
                                                         float (&out)[C::kOutTiles + 1][4]) {
  constexpr bool kShared = C::kColumnWarps == C::kStateSplit && C::kStateTiles == 1;  // same columns for both products
  const Tile y = Engine::tile_at(tile(stage, C::kY));
  const Tile z = Engine::tile_at(tile(stage, C::kZ));
  const int first_column = column_warp * C::kOutColumns;
#pragma unroll
  for (int k = 0; k < kChunk / C::kDepth; ++k) {
    typename Engine::SumA cosine[C::kStateTiles], sine[C::kStateTiles];
    A a;
    if constexpr (kScores) a = Engine::weights_a(weights[k]);
    if constexpr (kSums) {
#pragma unroll
      for (int m = 0; m < C::kStateTiles; ++m) {
        const A raw = Engine::load_a_transposed(y, C::kFeaturePitch, state_row(m), k * C::kDepth, lane);
        cosine[m] = Engine::scaled(raw, weight_array(0), k * C::kDepth, lane);
        sine[m] = Engine::scaled(raw, weight_array(1), k * C::kDepth, lane);
      }
#pragma unroll
      for (int n = 0; n < C::kSplitTiles; n += 2) {
        B b0, b1;
        Engine::load_b_transposed(b0, b1, z, C::kValuePitch, state_column(n), k * C::kDepth, lane);
#pragma unroll
        for (int m = 0; m < C::kStateTiles; ++m) {
          Engine::multiply(state[0][m][n], cosine[m], b0);
          Engine::multiply(state[0][m][n + 1], cosine[m], b1);
          Engine::multiply(state[1][m][n], sine[m], b0);
          Engine::multiply(state[1][m][n + 1], sine[m], b1);
        }
        if constexpr (kScores && kShared) {
          Engine::multiply(out[n], a, b0);
          Engine::multiply(out[n + 1], a, b1);
        }
      }
      if constexpr (C::kExtraColumn) {
        const auto b = extra_column(stage, k * C::kDepth);
#pragma unroll
        for (int m = 0; m < C::kStateTiles; ++m) {
          Engine::multiply(state[0][m][C::kSplitTiles], cosine[m], b);
          Engine::multiply(state[1][m][C::kSplitTiles], sine[m], b);
        }
      }
    }
    if constexpr (kScores) {
      if constexpr (!kSums || !kShared) {
#pragma unroll
        for (int n = 0; n < C::kOutTiles; ++n) {
          Engine::multiply(out[n], a,
                           Engine::load_b1_transposed(z, C::kValuePitch, first_column + n * 8, k * C::kDepth, lane));
        }
      }
      if constexpr (kRole == Role::kForward) Engine::multiply(out[C::kOutTiles], a, Engine::ones_b(lane));
    }
  }
}

}  // namespace cosformer::kernels::cuda
