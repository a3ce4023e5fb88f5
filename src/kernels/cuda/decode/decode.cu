// One to eight new tokens on a carried state: every number of the state is read once, updated and written once.
#include <cstdint>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/decode/tokens.cuh"
#include "kernels/cuda/device_numbers.cuh"
#include "kernels/cuda/instructions.cuh"
#include "kernels/cuda/launch.cuh"

namespace cosformer::kernels::cuda {
namespace {

// Adjacent numbers of the state, from and to memory that is used once.
template <int kVector>
__device__ __forceinline__ StatePiece<kVector> load_piece(const float* p) {
  if constexpr (kVector == 2) {
    const float2 x = __ldcs(reinterpret_cast<const float2*>(p));
    return {{x.x, x.y}};
  } else {
    return {{*p}};
  }
}
template <int kVector>
__device__ __forceinline__ void store_piece(float* p, const StatePiece<kVector>& piece) {
  if constexpr (kVector == 2) {
    __stcs(reinterpret_cast<float2*>(p), make_float2(piece.x[0], piece.x[1]));
  } else {
    *p = piece.x[0];
  }
}

// One head. A thread owns kVector adjacent value columns and every `stride`-th feature. The state is under way from the
// first line on, kAhead features of it: what is made of the tokens themselves costs the memory no time.
template <class Io, int kTokens, int kVector>
__global__ void __launch_bounds__(kDecodeThreads, 2) decode_kernel(const __grid_constant__ Problem p) {
  COSFORMER_SHARED(DecodeShared<kTokens>, shared);
  const std::int64_t head_index = blockIdx.x;
  const int dim = static_cast<int>(p.dim), value_dim = static_cast<int>(p.value_dim);
  const int thread = static_cast<int>(threadIdx.x);
  const int vectors = value_dim / kVector;
  const int stride = kDecodeThreads / vectors;  // features handled at a time
  const int column = thread % vectors * kVector, first = thread / vectors;
  const int begin = first < stride ? first : dim;  // some threads may have no feature
  const int matrix = dim * value_dim;
  const std::int64_t base = head_index * 2 * matrix + column;
  constexpr int kAhead = 8;
  StatePiece<kVector> state[kAhead][2] = {};
  const auto fetch = [&](StatePiece<kVector>(&piece)[2], int d) {
    if (d >= dim || p.state_kv_in == nullptr) return;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      piece[part] = load_piece<kVector>(p.state_kv_in + base + part * matrix + d * value_dim);
    }
  };
#pragma unroll
  for (int u = 0; u < kAhead; ++u) fetch(state[u], begin + u * stride);

  DecodeTokens<Io, kTokens> tokens(p, shared, head_index);
  tokens.load();
  tokens.prepare();
  DecodeColumns<kTokens, kVector> columns;
  tokens.begin(columns, column);
  for (int d0 = begin; d0 < dim; d0 += stride * kAhead) {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int d = d0 + u * stride;
      if (d >= dim) break;
      StatePiece<kVector> now[2] = {state[u][0], state[u][1]};
      tokens.go_past(columns, d, now);
      fetch(state[u], d + stride * kAhead);
      if (p.state_kv_out != nullptr) {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          store_piece(p.state_kv_out + base + part * matrix + d * value_dim, now[part]);
        }
      }
    }
  }
  tokens.finish(columns, column, first, stride);
}

template <class Io>
cudaError_t launch(const Problem& p, cudaStream_t stream) {
  const auto aligned = [](const void* x) { return reinterpret_cast<std::uintptr_t>(x) % 8 == 0; };
  const bool vector = p.value_dim % 2 == 0 && aligned(p.state_kv_in) && aligned(p.state_kv_out);
  const auto start = [&](auto kernel) {
    return launch_kernel(kernel, static_cast<unsigned>(p.sequences * p.heads), kDecodeThreads, stream, p);
  };
  constexpr int kMost = static_cast<int>(kMaxDecodeTokens);
  if (!vector) return start(decode_kernel<Io, kMost, 1>);
  if (p.q_length == 1) return start(decode_kernel<Io, 1, 2>);
  if (p.q_length <= 4) return start(decode_kernel<Io, 4, 2>);
  return start(decode_kernel<Io, kMost, 2>);
}

}  // namespace

cudaError_t launch_decode(const Problem& p, cudaStream_t stream) {
  return with_numbers(p.dtype, [&](auto numbers) { return launch<typename decltype(numbers)::Stored>(p, stream); });
}

}  // namespace cosformer::kernels::cuda
