// One to eight new tokens on a carried state: every number of the state is read once, updated and written once.
#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/numbers.cuh"

namespace cosformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxTokens = static_cast<int>(kMaxDecodeTokens);
constexpr int kMaxDim = static_cast<int>(kMaxHeadDim);

// A thread owns kVector adjacent value columns and every `stride`-th feature of one head.
template <class Io, int kTokens, int kVector>
__global__ void __launch_bounds__(kThreads) decode_kernel(const __grid_constant__ Problem p) {
  __shared__ float4 features[kTokens][kMaxDim];  // k cos, k sin, q cos, q sin
  __shared__ float partial[kThreads * kVector];
  __shared__ float denominators[kTokens];
  __shared__ float powers[kTokens + 1];             // of the decay
  __shared__ float similarities[kTokens][kTokens];  // of query and earlier key, decayed
  const std::int64_t head_index = blockIdx.x;
  const std::int64_t sequence = head_index / p.heads;
  const int head = static_cast<int>(head_index % p.heads);
  const int dim = static_cast<int>(p.dim), value_dim = static_cast<int>(p.value_dim);
  const double theta = p.theta_per_head == nullptr ? p.theta : static_cast<double>(p.theta_per_head[head]);
  std::int64_t position = p.position == nullptr ? 0 : p.position[sequence];
  if (p.period > 0) position %= p.period;
  const float log_decay = p.log_decay == nullptr ? 0.0F : p.log_decay[head];
  const int tokens = static_cast<int>(p.q_length);

  const auto at = [&](const auto& view, int token) {
    return sequence * view.batch_stride + token * view.time_stride + head * view.head_stride;
  };
  for (int i = threadIdx.x; i < kTokens * dim; i += kThreads) {
    const int token = i / dim, d = i % dim;
    float k = 0.0F, q = 0.0F;
    if (token < tokens) {
      const bool present =
          p.key_mask == nullptr || p.key_mask[sequence * p.mask_batch_stride + token * p.mask_time_stride];
      k = present ? map_forward(p.feature_map, to_float(static_cast<const Io*>(p.k.data)[at(p.k, token) + d])) : 0.0F;
      q = map_forward(p.feature_map, to_float(static_cast<const Io*>(p.q.data)[at(p.q, token) + d]));
    }
    const Turn turn = turn_of(theta, static_cast<double>(position + token));
    features[token][d] = make_float4(k * turn.cosine, k * turn.sine, q * turn.cosine, q * turn.sine);
  }
  if (threadIdx.x <= kTokens) powers[threadIdx.x] = decay_of(log_decay, threadIdx.x);
  __syncthreads();
  // New tokens see each other by the definition: a warp for each pair.
  for (int pair = threadIdx.x / 32; pair < tokens * tokens; pair += kThreads / 32) {
    const int i = pair / tokens, j = pair % tokens;
    float sum = 0.0F;
    if (j <= i) {
      for (int d = threadIdx.x % 32; d < dim; d += 32) {
        sum += features[i][d].z * features[j][d].x + features[i][d].w * features[j][d].y;
      }
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
    }
    if (threadIdx.x % 32 == 0) similarities[i][j] = j <= i ? sum * powers[i - j] : 0.0F;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < tokens * dim; i += kThreads) {  // from here on keys as the state takes them
    const int token = i / dim;
    features[token][i % dim].x *= powers[tokens - 1 - token];
    features[token][i % dim].y *= powers[tokens - 1 - token];
  }
  __syncthreads();

  // The normaliser's state: warp 0, every 32nd feature to a lane.
  if (threadIdx.x < 32) {
    const float* in = p.state_z_in == nullptr ? nullptr : p.state_z_in + head_index * 2 * dim;
    float* out = p.state_z_out == nullptr ? nullptr : p.state_z_out + head_index * 2 * dim;
    float sums[kTokens] = {};
    for (int d = threadIdx.x; d < dim; d += 32) {
      float c = in == nullptr ? 0.0F : in[d], s = in == nullptr ? 0.0F : in[dim + d];
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (token < tokens) sums[token] += features[token][d].z * c + features[token][d].w * s;
      }
      c *= powers[tokens];
      s *= powers[tokens];
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (token >= tokens) break;
        c += features[token][d].x;
        s += features[token][d].y;
      }
      if (out != nullptr) {
        out[d] = c;
        out[dim + d] = s;
      }
    }
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) sums[token] += __shfl_xor_sync(0xffffffffU, sums[token], offset);
      if (threadIdx.x == 0 && token < tokens) {
        sums[token] *= powers[token + 1];
        for (int j = 0; j <= token; ++j) sums[token] += similarities[token][j];
        denominators[token] = sums[token];
        if (p.denominator.data != nullptr)
          static_cast<float*>(p.denominator.data)[at(p.denominator, token)] = sums[token];
      }
    }
  }

  const int vectors = value_dim / kVector;
  const int stride = kThreads / vectors;  // features handled at a time
  const int column = threadIdx.x % vectors * kVector, first = threadIdx.x / vectors;
  const bool active = first < stride;
  float sums[kTokens][kVector] = {}, values[kTokens][kVector] = {};
  if (active) {
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      if (token >= tokens) break;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        values[token][i] = to_float(static_cast<const Io*>(p.v.data)[at(p.v, token) + column + i]);
      }
    }
    const std::int64_t matrix = static_cast<std::int64_t>(dim) * value_dim;
    const std::int64_t base = head_index * 2 * matrix + column;
    constexpr int kUnroll = kTokens == 1 ? 8 : 4;  // loads in flight
    const float carried = powers[tokens];
    for (int d0 = first; d0 < dim; d0 += stride * kUnroll) {
      float state[kUnroll][2][kVector] = {};
      if (p.state_kv_in != nullptr) {
#pragma unroll
        for (int u = 0; u < kUnroll; ++u)
#pragma unroll
          for (int part = 0; part < 2; ++part) {
            const int d = d0 + u * stride;
            if (d >= dim) continue;
            const float* from = p.state_kv_in + base + part * matrix + static_cast<std::int64_t>(d) * value_dim;
            if constexpr (kVector == 4) {
              const float4 x = __ldcs(reinterpret_cast<const float4*>(from));
              state[u][part][0] = x.x;
              state[u][part][1] = x.y;
              state[u][part][2] = x.z;
              state[u][part][3] = x.w;
            } else {
              state[u][part][0] = *from;
            }
          }
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int d = d0 + u * stride;
        if (d >= dim) continue;
        float next[2][kVector];
#pragma unroll
        for (int part = 0; part < 2; ++part)
#pragma unroll
          for (int i = 0; i < kVector; ++i) next[part][i] = state[u][part][i] * carried;
#pragma unroll
        for (int token = 0; token < kTokens; ++token) {
          if (token >= tokens) break;
          const float4 f = features[token][d];
#pragma unroll
          for (int i = 0; i < kVector; ++i) {
            sums[token][i] += f.z * state[u][0][i] + f.w * state[u][1][i];
            next[0][i] += f.x * values[token][i];
            next[1][i] += f.y * values[token][i];
          }
        }
        if (p.state_kv_out != nullptr) {
#pragma unroll
          for (int part = 0; part < 2; ++part) {
            float* to = p.state_kv_out + base + part * matrix + static_cast<std::int64_t>(d) * value_dim;
            if constexpr (kVector == 4) {
              __stcs(reinterpret_cast<float4*>(to),
                     make_float4(next[part][0], next[part][1], next[part][2], next[part][3]));
            } else {
              *to = next[part][0];
            }
          }
        }
      }
    }
  }
#pragma unroll
  for (int token = 0; token < kTokens; ++token) {
    if (token >= tokens) break;
    __syncthreads();
    if (active) {
#pragma unroll
      for (int i = 0; i < kVector; ++i) partial[first * value_dim + column + i] = sums[token][i];
    }
    __syncthreads();
    for (int c = threadIdx.x; c < value_dim; c += kThreads) {
      float sum = 0.0F;
      for (int r = 0; r < stride; ++r) sum += partial[r * value_dim + c];
      sum *= powers[token + 1];
      for (int j = 0; j <= token; ++j) {
        sum += similarities[token][j] * to_float(static_cast<const Io*>(p.v.data)[at(p.v, j) + c]);
      }
      if (p.normalizer == Normalizer::kSum) sum /= fmaxf(denominators[token], static_cast<float>(p.eps));
      static_cast<Io*>(p.out.data)[at(p.out, token) + c] = from_float<Io>(sum);
    }
  }
}

template <class Io>
cudaError_t launch(const Problem& p, cudaStream_t stream) {
  const auto aligned = [](const void* x) { return reinterpret_cast<std::uintptr_t>(x) % 16 == 0; };
  const bool vector = p.value_dim % 4 == 0 && aligned(p.state_kv_in) && aligned(p.state_kv_out);
  const auto start = [&](auto kernel) {
    kernel<<<static_cast<unsigned>(p.sequences * p.heads), kThreads, 0, stream>>>(p);
    return cudaGetLastError();
  };
  if (!vector) return start(decode_kernel<Io, kMaxTokens, 1>);
  if (p.q_length == 1) return start(decode_kernel<Io, 1, 4>);
  if (p.q_length <= 4) return start(decode_kernel<Io, 4, 4>);
  return start(decode_kernel<Io, kMaxTokens, 4>);
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
