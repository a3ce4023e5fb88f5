// Matrix-unit engines: how a warp loads operand fragments from shared memory and multiplies them.
//
// An engine names its operand type and the depth kDepth of one step. Fragments: A is 16 x kDepth, B is kDepth x 8,
// accumulators 16 x 8 floats with the usual layout: lane = 4·g + t holds (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1).
// Depth indices may be permuted inside a step as long as A and B agree, which TF32 uses: slot t stands for index 2t,
// slot t + 4 for 2t + 1, so that two neighbours of a 16-bit fragment are the two slots of a lane.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/instructions.cuh"

namespace cosformer::kernels::cuda {

__device__ __forceinline__ float low_of(std::uint32_t packed) {
  return __uint_as_float(packed << 16);
}
__device__ __forceinline__ float high_of(std::uint32_t packed) {
  return __uint_as_float(packed & 0xffff0000U);
}

// Two 16-bit numbers of one register.
template <class Number>
struct Pair;
template <>
struct Pair<__nv_bfloat16> {
  using Vector = __nv_bfloat162;
  static constexpr std::uint32_t kOnes = 0x3f803f80U;
  static __device__ __forceinline__ std::uint32_t pack(float low, float high) { return pack_bf16(low, high); }
  static __device__ __forceinline__ float2 unpack(std::uint32_t packed) {
    return make_float2(low_of(packed), high_of(packed));
  }
};
template <>
struct Pair<__half> {
  using Vector = __half2;
  static constexpr std::uint32_t kOnes = 0x3c003c00U;
  static __device__ __forceinline__ std::uint32_t pack(float low, float high) { return pack_f16(low, high); }
  static __device__ __forceinline__ float2 unpack(std::uint32_t packed) {
    return __half22float2(reinterpret_cast<const __half2&>(packed));
  }
};

__device__ __forceinline__ float round_to_tf32(float x) {
  return __uint_as_float(tf32_of(x));
}
// 16-bit operands, m16n8k16.
//
// float16 has a narrow range: sums, scores, inverse denominators and powers of a decay leave it where the data do not.
// So those who publish a state or scores choose a power of two for them, and what has been weighted is multiplied in
// TF32, made from the 16-bit fragments (WideA, WideB).
template <class Number>
struct PairEngine {
  using Operand = Number;
  using Pairs = Pair<Number>;
  using Vector = typename Pairs::Vector;
  static constexpr bool kNarrowRange = std::is_same_v<Number, __half>;
  using Tile = std::uint32_t;  // address in shared memory: 32-bit arithmetic
  static __device__ __forceinline__ Tile tile_at(const void* p) { return shared_address(p); }
  static constexpr int kDepth = 16;
  static constexpr int kPad =
      8;  // elements; makes a row an odd number of 16-byte units, so that ldmatrix has no conflicts
  static constexpr int kStatePad = 8;
  struct A {
    std::uint32_t r[4];
  };
  struct B {
    std::uint32_t r[2];
  };
  using Weights = A;  // 16 rows of scores against one depth step of tokens
  // The same in two steps of TF32.
  struct WideA {
    float r[2][4];
  };
  struct WideB {
    float r[2][2];
  };
  using SumA = std::conditional_t<kNarrowRange, WideA, A>;  // rows that were weighted
  using ColumnB = std::conditional_t<kNarrowRange, WideB, B>;

  static __device__ __forceinline__ void multiply(float (&c)[4], const A& a, const B& b) {
    if constexpr (kNarrowRange) {
      multiply_f16(c, a.r, b.r);
    } else {
      multiply_bf16(c, a.r, b.r);
    }
  }
  static __device__ __forceinline__ void multiply(float (&c)[4], const WideA& a, const WideB& b) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      const std::uint32_t left[4] = {__float_as_uint(a.r[step][0]), __float_as_uint(a.r[step][1]),
                                     __float_as_uint(a.r[step][2]), __float_as_uint(a.r[step][3])};
      const std::uint32_t right[2] = {__float_as_uint(b.r[step][0]), __float_as_uint(b.r[step][1])};
      multiply_tf32(c, left, right);
    }
  }
  static __device__ __forceinline__ void multiply(float (&c)[4], const WideA& a, const B& b) {
    const float2 first = Pairs::unpack(b.r[0]), second = Pairs::unpack(b.r[1]);
    multiply(c, a, WideB{{{first.x, first.y}, {second.x, second.y}}});
  }
  // A[m][k] from storage [m][k].
  static __device__ __forceinline__ A load_a(Tile tile, int pitch, int m, int k, int lane) {
    A a;
    load_matrices(a.r, tile + 2 * (((lane & 15) * pitch + (lane >> 4) * 8) + (m * pitch + k)));
    return a;
  }
  // A[m][k] from storage [k][m].
  static __device__ __forceinline__ A load_a_transposed(Tile tile, int pitch, int m, int k, int lane) {
    A a;
    load_matrices_transposed(
        a.r, tile + 2 * ((((lane & 7) + (lane >> 4) * 8) * pitch + ((lane >> 3) & 1) * 8) + (k * pitch + m)));
    return a;
  }
  // Two B[k][n] tiles, n and n + 8, from storage [n][k].
  static __device__ __forceinline__ void load_b(B& b0, B& b1, Tile tile, int pitch, int n, int k, int lane) {
    std::uint32_t r[4];
    load_matrices(r, tile + 2 * ((((lane & 7) + (lane >> 4) * 8) * pitch + ((lane >> 3) & 1) * 8) + (n * pitch + k)));
    b0 = {{r[0], r[1]}};
    b1 = {{r[2], r[3]}};
  }
  // Two B[k][n] tiles, n and n + 8, from storage [k][n].
  static __device__ __forceinline__ void load_b_transposed(B& b0, B& b1, Tile tile, int pitch, int n, int k, int lane) {
    std::uint32_t r[4];
    load_matrices_transposed(r, tile + 2 * (((lane & 15) * pitch + (lane >> 4) * 8) + (k * pitch + n)));
    b0 = {{r[0], r[1]}};
    b1 = {{r[2], r[3]}};
  }
  // One B[k][n] tile from storage [k][n].
  static __device__ __forceinline__ B load_b1_transposed(Tile tile, int pitch, int n, int k, int lane) {
    B b;
    load_matrices_transposed(b.r, tile + 2 * ((lane & 15) * pitch + (k * pitch + n)));
    return b;
  }
  // B whose column 0 is `first[k]` and column 1 what rounding dropped of it; others are zero.
  static __device__ __forceinline__ ColumnB column_b(const float* first, int k, int lane) {
    const int g = lane >> 2, t = lane & 3;
    ColumnB b = {};
    if (g > 1) return b;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float x = first[k + 2 * t + 8 * i], y = first[k + 2 * t + 8 * i + 1];
      if constexpr (kNarrowRange) {
        b.r[i][0] = head_or_rest(x, g == 1);
        b.r[i][1] = head_or_rest(y, g == 1);
      } else {
        b.r[i] = head_or_rest(x, y, g == 1);
      }
    }
    return b;
  }
  static __device__ __forceinline__ B ones_b(int lane) {
    const std::uint32_t one = lane < 4 ? Pairs::kOnes : 0U;
    return {{one, one}};
  }
  // A whose rows 0 and 1 are `first[k]` and `second[k]`, rows 2 and 3 what rounding dropped of them.
  static __device__ __forceinline__ SumA rows_a(const float* first, const float* second, int k, int lane) {
    const int g = lane >> 2, t = lane & 3;
    SumA a = {};
    if (g > 3) return a;
    const float* row = (g & 1) == 0 ? first : second;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float x = row[k + 2 * t + 8 * i], y = row[k + 2 * t + 8 * i + 1];
      if constexpr (kNarrowRange) {
        a.r[i][0] = head_or_rest(x, g > 1);
        a.r[i][2] = head_or_rest(y, g > 1);
      } else {
        a.r[2 * i] = head_or_rest(x, y, g > 1);
      }
    }
    return a;
  }
  // A with every element passed through f.
  template <class F>
  static __device__ __forceinline__ A mapped(const A& a, F f) {
    A m;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 x = Pairs::unpack(a.r[i]);
      m.r[i] = Pairs::pack(f(x.x), f(x.y));
    }
    return m;
  }
  // Weights of tokens as the matrix unit's number.
  using Weight = std::conditional_t<kNarrowRange, float, Number>;
  // Scales column k of A by weight[k].
  static __device__ __forceinline__ SumA scaled(const A& a, const Weight* weight, int k, int lane) {
    const int t = lane & 3;
    SumA s;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (kNarrowRange) {
        const float2 w = *reinterpret_cast<const float2*>(weight + k + 2 * t + 8 * i);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const float2 x = Pairs::unpack(a.r[2 * i + j]);
          s.r[i][j] = round_to_tf32(x.x * w.x);
          s.r[i][j + 2] = round_to_tf32(x.y * w.y);
        }
      } else {
        const Vector w = *reinterpret_cast<const Vector*>(weight + k + 2 * t + 8 * i);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const Vector x = __hmul2(reinterpret_cast<const Vector&>(a.r[2 * i + j]), w);
          s.r[2 * i + j] = reinterpret_cast<const std::uint32_t&>(x);
        }
      }
    }
    return s;
  }
  // Part `part` of the same product, split into parts that add up to a float.
  static constexpr int kParts = 3;
  static __device__ __forceinline__ SumA scaled_part(const A& a, const float* weight, int k, int lane, int part) {
    SumA s;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 w = *reinterpret_cast<const float2*>(weight + k + 2 * (lane & 3) + 8 * (i / 2));
      float2 x = Pairs::unpack(a.r[i]);
      x = make_float2(x.x * w.x, x.y * w.y);
      for (int n = 0; n < part; ++n) {
        if constexpr (kNarrowRange) {
          x = make_float2(x.x - round_to_tf32(x.x), x.y - round_to_tf32(x.y));
        } else {
          const float2 head = Pairs::unpack(Pairs::pack(x.x, x.y));
          x = make_float2(x.x - head.x, x.y - head.y);
        }
      }
      if constexpr (kNarrowRange) {
        s.r[i / 2][i % 2] = round_to_tf32(x.x);
        s.r[i / 2][i % 2 + 2] = round_to_tf32(x.y);
      } else {
        s.r[i] = Pairs::pack(x.x, x.y);
      }
    }
    return s;
  }
  // Scores of 16 rows against 16 tokens, two accumulator tiles, as one step of A.
  static __device__ __forceinline__ void pack_weights(Weights* w, const float (&c0)[4], const float (&c1)[4]) {
    w[0] = {
        {Pairs::pack(c0[0], c0[1]), Pairs::pack(c0[2], c0[3]), Pairs::pack(c1[0], c1[1]), Pairs::pack(c1[2], c1[3])}};
  }
  static __device__ __forceinline__ A weights_a(const Weights& w) {
    return w;
  }
  static __device__ __forceinline__ void store_pair(Tile tile, int offset, float x, float y) {
    store_shared_4(tile + 2 * offset, Pairs::pack(x, y));
  }

 private:
  // What a number is rounded to, or what that drops of it.
  static __device__ __forceinline__ float head_or_rest(float x, bool rest) {
    const float head = round_to_tf32(x);
    return rest ? round_to_tf32(x - head) : head;
  }
  static __device__ __forceinline__ std::uint32_t head_or_rest(float x, float y, bool rest) {
    const std::uint32_t head = Pairs::pack(x, y);
    const float2 kept = Pairs::unpack(head);
    return rest ? Pairs::pack(x - kept.x, y - kept.y) : head;
  }
};

// Float operands in TF32: each number split into three parts, six products of them, which keeps whole float products.
struct FloatEngine {
  using Operand = float;
  static constexpr bool kNarrowRange = false;
  using Tile = const float*;
  static __device__ __forceinline__ Tile tile_at(const void* p) { return static_cast<const float*>(p); }
  static constexpr int kDepth = 8;
  static constexpr int kPad = 4;
  static constexpr int kStatePad = 12;
  struct A {
    float r[4];
  };
  struct alignas(8) B {
    float r[2];
  };
  using SumA = A;
  struct Weights {
    float r[4];
  };

  struct Parts {
    std::uint32_t head, middle, tail;
  };
  static __device__ __forceinline__ Parts split(float x) {
    const std::uint32_t head = tf32_of(x);
    const float rest = x - __uint_as_float(head);
    const std::uint32_t middle = tf32_of(rest);
    return {head, middle, __float_as_uint(rest - __uint_as_float(middle))};
  }
  static __device__ __forceinline__ void multiply(float (&c)[4], const A& a, const B& b) {
    // The unit cuts off what does not fit its accumulator, so every step starts from zero and is added with rounding.
    std::uint32_t ah[4], am[4], al[4], bh[2], bm[2], bl[2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Parts part = split(a.r[i]);
      ah[i] = part.head;
      am[i] = part.middle;
      al[i] = part.tail;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Parts part = split(b.r[i]);
      bh[i] = part.head;
      bm[i] = part.middle;
      bl[i] = part.tail;
    }
    float low[4] = {}, d[4] = {};
    multiply_tf32(low, al, bh);
    multiply_tf32(low, ah, bl);
    multiply_tf32(low, am, bm);
    multiply_tf32(low, am, bh);
    multiply_tf32(low, ah, bm);
    multiply_tf32(d, ah, bh);
#pragma unroll
    for (int i = 0; i < 4; ++i) c[i] += d[i] + low[i];
  }
  static __device__ __forceinline__ A load_a(Tile tile, int pitch, int m, int k, int lane) {
    const float* p = tile + (m + (lane >> 2)) * pitch + k + 2 * (lane & 3);
    const float2 top = *reinterpret_cast<const float2*>(p);
    const float2 bottom = *reinterpret_cast<const float2*>(p + 8 * pitch);
    return {{top.x, bottom.x, top.y, bottom.y}};
  }
  static __device__ __forceinline__ A load_a_transposed(Tile tile, int pitch, int m, int k, int lane) {
    const float* p = tile + (k + 2 * (lane & 3)) * pitch + m + (lane >> 2);
    return {{p[0], p[8], p[pitch], p[pitch + 8]}};
  }
  static __device__ __forceinline__ void load_b(B& b0, B& b1, Tile tile, int pitch, int n, int k, int lane) {
    const float* p = tile + (n + (lane >> 2)) * pitch + k + 2 * (lane & 3);
    b0 = *reinterpret_cast<const B*>(p);
    b1 = *reinterpret_cast<const B*>(p + 8 * pitch);
  }
  static __device__ __forceinline__ void load_b_transposed(B& b0, B& b1, Tile tile, int pitch, int n, int k, int lane) {
    const float* p = tile + (k + 2 * (lane & 3)) * pitch + n + (lane >> 2);
    b0 = {{p[0], p[pitch]}};
    b1 = {{p[8], p[pitch + 8]}};
  }
  static __device__ __forceinline__ B load_b1_transposed(Tile tile, int pitch, int n, int k, int lane) {
    const float* p = tile + (k + 2 * (lane & 3)) * pitch + n + (lane >> 2);
    return {{p[0], p[pitch]}};
  }
  static __device__ __forceinline__ B column_b(const float* first, int k, int lane) {
    const int g = lane >> 2, t = lane & 3;
    if (g > 1) return {{0.0F, 0.0F}};
    B b;
    for (int i = 0; i < 2; ++i) {
      const float x = first[k + 2 * t + i];
      const float head = round_to_tf32(x);
      b.r[i] = g == 0 ? head : x - head;
    }
    return b;
  }
  static __device__ __forceinline__ B ones_b(int lane) {
    const float one = lane < 4 ? 1.0F : 0.0F;
    return {{one, one}};
  }
  static __device__ __forceinline__ A rows_a(const float* first, const float* second, int k, int lane) {
    const int g = lane >> 2, t = lane & 3;
    if (g > 3) return {{0.0F, 0.0F, 0.0F, 0.0F}};
    const float* row = (g & 1) == 0 ? first : second;
    A a = {{0.0F, 0.0F, 0.0F, 0.0F}};
    for (int i = 0; i < 2; ++i) {
      const float x = row[k + 2 * t + i];
      const float head = round_to_tf32(x);
      a.r[2 * i] = g < 2 ? head : x - head;
    }
    return a;
  }
  template <class F>
  static __device__ __forceinline__ A mapped(const A& a, F f) {
    return {{f(a.r[0]), f(a.r[1]), f(a.r[2]), f(a.r[3])}};
  }
  using Weight = float;
  static __device__ __forceinline__ A scaled(const A& a, const Weight* weight, int k, int lane) {
    const float2 w = *reinterpret_cast<const float2*>(weight + k + 2 * (lane & 3));
    return {{a.r[0] * w.x, a.r[1] * w.x, a.r[2] * w.y, a.r[3] * w.y}};
  }
  static constexpr int kParts = 1;
  static __device__ __forceinline__ A scaled_part(const A& a, const float* weight, int k, int lane, int /*part*/) {
    return scaled(a, weight, k, lane);
  }
  static __device__ __forceinline__ void pack_weights(Weights* w, const float (&c0)[4], const float (&c1)[4]) {
    w[0] = {{c0[0], c0[1], c0[2], c0[3]}};
    w[1] = {{c1[0], c1[1], c1[2], c1[3]}};
  }
  static __device__ __forceinline__ A weights_a(const Weights& w) {
    return {{w.r[0], w.r[2], w.r[1], w.r[3]}};
  }
  static __device__ __forceinline__ void store_pair(Tile tile, int offset, float x, float y) {
    *reinterpret_cast<float2*>(const_cast<float*>(tile) + offset) = make_float2(x, y);
  }
};

}  // namespace cosformer::kernels::cuda
