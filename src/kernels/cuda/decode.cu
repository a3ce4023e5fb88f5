// One to eight new tokens on a carried state: every number of the state is read once, updated and written once.
#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/numbers.cuh"

namespace cosformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxTokens = static_cast<int>(kMaxDecodeTokens);
constexpr int kMaxDim = static_cast<int>(kMaxHeadDim);

// Adjacent numbers of the state, from and to memory that is used once.
template <int kVector>
struct Piece {
  float x[kVector];
};
template <int kVector>
__device__ __forceinline__ Piece<kVector> load_piece(const float* p) {
  if constexpr (kVector == 2) {
    const float2 x = __ldcs(reinterpret_cast<const float2*>(p));
    return {{x.x, x.y}};
  } else {
    return {{*p}};
  }
}
template <int kVector>
__device__ __forceinline__ void store_piece(float* p, const Piece<kVector>& piece) {
  if constexpr (kVector == 2) {
    __stcs(reinterpret_cast<float2*>(p), make_float2(piece.x[0], piece.x[1]));
  } else {
    *p = piece.x[0];
  }
}

// One head. A thread owns kVector adjacent value columns and every `stride`-th feature; a warp also one of the tokens,
// its similarities and its denominator. The state is under way from the first line on, kAhead features of it: what is
// made of the tokens themselves costs the memory no time. Tokens up to kTokens that are not there have features and
// values of zero.
template <class Io, int kTokens, int kVector>
__global__ void __launch_bounds__(kThreads, 2) decode_kernel(const __grid_constant__ Problem p) {
  __shared__ float4 features[kTokens][kMaxDim];  // k cos, k sin, q cos, q sin; in the end the threads' sums
  __shared__ float values[kTokens][kMaxDim];
  __shared__ float2 normalizer_state[kMaxDim];
  __shared__ Turn turns[kTokens];
  __shared__ float powers[kTokens + 1];             // of the decay
  __shared__ float similarities[kTokens][kTokens];  // of query and earlier key, decayed
  __shared__ float denominators[kTokens];
  static_assert(sizeof(features) >= kTokens * kThreads * kVector * sizeof(float));
  static_assert(kThreads >= kMaxDim && kThreads / 32 >= kTokens);
  const std::int64_t head_index = blockIdx.x;
  const std::int64_t sequence = head_index / p.heads;
  const int head = static_cast<int>(head_index % p.heads);
  const int dim = static_cast<int>(p.dim), value_dim = static_cast<int>(p.value_dim);
  const int tokens = kTokens == 1 ? 1 : static_cast<int>(p.q_length);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;

  const int vectors = value_dim / kVector;
  const int stride = kThreads / vectors;  // features handled at a time
  const int column = thread % vectors * kVector, first = thread / vectors;
  const int begin = first < stride ? first : dim;  // some threads may have no feature
  const int matrix = dim * value_dim;
  const std::int64_t base = head_index * 2 * matrix + column;
  constexpr int kAhead = 8;
  Piece<kVector> state[kAhead][2] = {};
  const auto fetch = [&](Piece<kVector>(&piece)[2], int d) {
    if (d >= dim || p.state_kv_in == nullptr) return;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      piece[part] = load_piece<kVector>(p.state_kv_in + base + part * matrix + d * value_dim);
    }
  };
#pragma unroll
  for (int u = 0; u < kAhead; ++u) fetch(state[u], begin + u * stride);

  const auto at = [&](const auto& view, int token) {
    return sequence * view.batch_stride + token * view.time_stride + head * view.head_stride;
  };
  const auto present = [&](int token) {
    return p.key_mask == nullptr || p.key_mask[sequence * p.mask_batch_stride + token * p.mask_time_stride];
  };
  float own_k[kTokens] = {}, own_q[kTokens] = {};  // until the tokens' angles are known
#pragma unroll
  for (int n = 0; n < kTokens; ++n) {
    const int i = thread + n * kThreads, token = i / dim, d = i % dim;
    if (token >= tokens) break;
    const float k = to_float(static_cast<const Io*>(p.k.data)[at(p.k, token) + d]);
    own_k[n] = present(token) ? map_forward(p.feature_map, k) : 0.0F;
    own_q[n] = map_forward(p.feature_map, to_float(static_cast<const Io*>(p.q.data)[at(p.q, token) + d]));
  }
  for (int i = thread; i < tokens * value_dim; i += kThreads) {
    const int token = i / value_dim, c = i % value_dim;
    const float v = to_float(static_cast<const Io*>(p.v.data)[at(p.v, token) + c]);
    values[token][c] = present(token) ? v : 0.0F;
  }
  float2 z = {0.0F, 0.0F};
  if (thread < dim && p.state_z_in != nullptr) {
    const float* in = p.state_z_in + head_index * 2 * dim + thread;
    z = {in[0], in[dim]};
  }
  normalizer_state[thread] = z;
  if (thread < kTokens) {
    const double theta = p.theta_per_head == nullptr ? p.theta : static_cast<double>(p.theta_per_head[head]);
    std::int64_t position = p.position == nullptr ? 0 : p.position[sequence];
    if (p.period > 0) position %= p.period;
    turns[thread] = turn_of(theta, static_cast<double>(position + thread));
  }
  if (warp == 1 && lane <= tokens) powers[lane] = decay_of(p.log_decay == nullptr ? 0.0F : p.log_decay[head], lane);
  __syncthreads();
#pragma unroll
  for (int n = 0; n < kTokens; ++n) {
    const int i = thread + n * kThreads, token = i / dim, d = i % dim;
    if (token >= kTokens) break;
    const Turn turn = turns[token];
    features[token][d] =
        make_float4(own_k[n] * turn.cosine, own_k[n] * turn.sine, own_q[n] * turn.cosine, own_q[n] * turn.sine);
  }
  __syncthreads();

  // New tokens see each other by the definition.
  if (warp < tokens) {
    float of_state = 0.0F, of_key[kTokens] = {};
    for (int d = lane; d < dim; d += 32) {
      const float4 own = features[warp][d];
      const float2 before = normalizer_state[d];
      of_state += own.z * before.x + own.w * before.y;
#pragma unroll
      for (int j = 0; j < kTokens; ++j) {
        if (j <= warp) of_key[j] += own.z * features[j][d].x + own.w * features[j][d].y;
      }
    }
    float total = sum_over_warp(of_state) * powers[warp + 1];
#pragma unroll
    for (int j = 0; j < kTokens; ++j) {
      if (j > warp) break;
      const float similarity = sum_over_warp(of_key[j]) * powers[warp - j];
      total += similarity;
      if (lane == 0) similarities[warp][j] = similarity;
    }
    if (lane == 0) {
      denominators[warp] = total;
      if (p.denominator.data != nullptr) static_cast<float*>(p.denominator.data)[at(p.denominator, warp)] = total;
    }
  }
  const float carried = powers[tokens];
  if (thread < dim && p.state_z_out != nullptr) {
    z = {z.x * carried, z.y * carried};
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      if (token >= tokens) break;
      z.x += features[token][thread].x * powers[tokens - 1 - token];
      z.y += features[token][thread].y * powers[tokens - 1 - token];
    }
    float* out = p.state_z_out + head_index * 2 * dim + thread;
    out[0] = z.x;
    out[dim] = z.y;
  }

  // A token's value, decayed to what the last one's state has of it.
  float sums[kTokens][kVector] = {}, added[kTokens][kVector] = {};
#pragma unroll
  for (int token = 0; token < kTokens; ++token) {
    if (token >= tokens) break;
#pragma unroll
    for (int i = 0; i < kVector; ++i) added[token][i] = values[token][column + i] * powers[tokens - 1 - token];
  }
  for (int d0 = begin; d0 < dim; d0 += stride * kAhead) {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int d = d0 + u * stride;
      if (d >= dim) break;
      Piece<kVector> next[2];
#pragma unroll
      for (int part = 0; part < 2; ++part)
#pragma unroll
        for (int i = 0; i < kVector; ++i) next[part].x[i] = state[u][part].x[i] * carried;
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        const float4 f = features[token][d];
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          sums[token][i] = fmaf(f.z, state[u][0].x[i], fmaf(f.w, state[u][1].x[i], sums[token][i]));
          next[0].x[i] = fmaf(f.x, added[token][i], next[0].x[i]);
          next[1].x[i] = fmaf(f.y, added[token][i], next[1].x[i]);
        }
      }
      fetch(state[u], d + stride * kAhead);
      if (p.state_kv_out != nullptr) {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          store_piece(p.state_kv_out + base + part * matrix + d * value_dim, next[part]);
        }
      }
    }
  }

  __syncthreads();  // features have been read
  float* const partial = reinterpret_cast<float*>(features);
  if (first < stride) {
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      if (token >= tokens) break;
#pragma unroll
      for (int i = 0; i < kVector; ++i) partial[(token * stride + first) * value_dim + column + i] = sums[token][i];
    }
  }
  __syncthreads();
  for (int i = thread; i < tokens * value_dim; i += kThreads) {
    const int token = i / value_dim, c = i % value_dim;
    float sum = 0.0F;
    for (int r = 0; r < stride; ++r) sum += partial[(token * stride + r) * value_dim + c];
    sum *= powers[token + 1];
    for (int j = 0; j <= token; ++j) sum += similarities[token][j] * values[j][c];
    if (p.normalizer == Normalizer::kSum) sum /= fmaxf(denominators[token], static_cast<float>(p.eps));
    static_cast<Io*>(p.out.data)[at(p.out, token) + c] = from_float<Io>(sum);
  }
}

template <class Io>
cudaError_t launch(const Problem& p, cudaStream_t stream) {
  const auto aligned = [](const void* x) { return reinterpret_cast<std::uintptr_t>(x) % 8 == 0; };
  const bool vector = p.value_dim % 2 == 0 && aligned(p.state_kv_in) && aligned(p.state_kv_out);
  const auto start = [&](auto kernel) {
    kernel<<<static_cast<unsigned>(p.sequences * p.heads), kThreads, 0, stream>>>(p);
    return cudaGetLastError();
  };
  if (!vector) return start(decode_kernel<Io, kMaxTokens, 1>);
  if (p.q_length == 1) return start(decode_kernel<Io, 1, 2>);
  if (p.q_length <= 4) return start(decode_kernel<Io, 4, 2>);
  return start(decode_kernel<Io, kMaxTokens, 2>);
}

}  // namespace

cudaError_t attention_decode(const Problem& p, cudaStream_t stream) {
  const bool fits = p.dim > 0 && p.dim <= kMaxHeadDim && p.value_dim > 0 && p.value_dim <= kMaxHeadDim &&
                    p.q_length == p.k_length && p.q_length <= kMaxDecodeTokens && p.cu_seqlens_q == nullptr &&
                    p.causal && (p.state_kv_in == nullptr) == (p.state_z_in == nullptr) &&
                    (p.state_kv_out == nullptr) == (p.state_z_out == nullptr);
  if (!fits || p.q_length < 1) return cudaErrorInvalidValue;
  if (p.sequences * p.heads == 0) return cudaSuccess;
  switch (p.dtype) {
    case DType::kBFloat16: return launch<__nv_bfloat16>(p, stream);
    case DType::kFloat16: return launch<__half>(p, stream);
    case DType::kFloat32: return launch<float>(p, stream);
    case DType::kFloat64: break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace cosformer::kernels::cuda
