// Matrix-unit engines: how a warp loads operand fragments from shared memory and multiplies them.
//
// An engine names its operand type and the depth kDepth of one step. Fragments: A is 16 x kDepth, B is kDepth x 8,
// accumulators 16 x 8 floats with the usual layout: lane = 4·g + t holds (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1).
// Depth indices may be permuted inside a step as long as A and B agree, which the float32 engine uses.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>

namespace cosformer::kernels::cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
__device__ __forceinline__ float low_of(std::uint32_t packed) {
  return __uint_as_float(packed << 16);
}
__device__ __forceinline__ float high_of(std::uint32_t packed) {
  return __uint_as_float(packed & 0xffff0000U);
}

// bfloat16 operands, m16n8k16.
struct Bf16Engine {
  using Operand = __nv_bfloat16;
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

  static __device__ __forceinline__ void multiply(float (&c)[4], const A& a, const B& b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[0]), "r"(b.r[1]));
  }
  static __device__ __forceinline__ void load4(std::uint32_t (&r)[4], Tile p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(p)
                 : "memory");
  }
  static __device__ __forceinline__ void load4_transposed(std::uint32_t (&r)[4], Tile p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(p)
                 : "memory");
  }
  // A[m][k] from storage [m][k].
  static __device__ __forceinline__ A load_a(Tile tile, int pitch, int m, int k, int lane) {
    A a;
    load4(a.r, tile + 2 * (((lane & 15) * pitch + (lane >> 4) * 8) + (m * pitch + k)));
    return a;
  }
  // A[m][k] from storage [k][m].
  static __device__ __forceinline__ A load_a_transposed(Tile tile, int pitch, int m, int k, int lane) {
    A a;
    load4_transposed(a.r,
                     tile + 2 * ((((lane & 7) + (lane >> 4) * 8) * pitch + ((lane >> 3) & 1) * 8) + (k * pitch + m)));
    return a;
  }
  // Two B[k][n] tiles, n and n + 8, from storage [n][k].
  static __device__ __forceinline__ void load_b(B& b0, B& b1, Tile tile, int pitch, int n, int k, int lane) {
    std::uint32_t r[4];
    load4(r, tile + 2 * ((((lane & 7) + (lane >> 4) * 8) * pitch + ((lane >> 3) & 1) * 8) + (n * pitch + k)));
    b0 = {{r[0], r[1]}};
    b1 = {{r[2], r[3]}};
  }
  // Two B[k][n] tiles, n and n + 8, from storage [k][n].
  static __device__ __forceinline__ void load_b_transposed(B& b0, B& b1, Tile tile, int pitch, int n, int k, int lane) {
    std::uint32_t r[4];
    load4_transposed(r, tile + 2 * (((lane & 15) * pitch + (lane >> 4) * 8) + (k * pitch + n)));
    b0 = {{r[0], r[1]}};
    b1 = {{r[2], r[3]}};
  }
  // One B[k][n] tile from storage [k][n].
  static __device__ __forceinline__ B load_b1_transposed(Tile tile, int pitch, int n, int k, int lane) {
    B b;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(b.r[0]), "=r"(b.r[1])
                 : "r"(tile + 2 * ((lane & 15) * pitch + (k * pitch + n)))
                 : "memory");
    return b;
  }
  // B whose column 0 is `first[k]` and, for a second part of the precision, column 1 is `second[k]`; others are zero.
  static __device__ __forceinline__ B column_b(const float* first, int k, int lane) {
    const int g = lane >> 2, t = lane & 3;
    if (g > 1) return {{0U, 0U}};
    std::uint32_t r[2];
    for (int i = 0; i < 2; ++i) {
      const float x = first[k + 2 * t + 8 * i], y = first[k + 2 * t + 8 * i + 1];
      r[i] = pack_bf16(x, y);
      if (g == 1) r[i] = pack_bf16(x - low_of(r[i]), y - high_of(r[i]));
    }
    return {{r[0], r[1]}};
  }
  static __device__ __forceinline__ B ones_b(int lane) {
    const std::uint32_t one = lane < 4 ? 0x3f803f80U : 0U;
    return {{one, one}};
  }
  // A whose rows 0 and 1 are `first[k]` and `second[k]`, rows 2 and 3 what bfloat16 dropped of them.
  static __device__ __forceinline__ A rows_a(const float* first, const float* second, int k, int lane) {
    const int g = lane >> 2, t = lane & 3;
    if (g > 3) return {{0U, 0U, 0U, 0U}};
    const float* row = (g & 1) == 0 ? first : second;
    A a = {{0U, 0U, 0U, 0U}};
    for (int i = 0; i < 2; ++i) {
      const float x = row[k + 2 * t + 8 * i], y = row[k + 2 * t + 8 * i + 1];
      std::uint32_t r = pack_bf16(x, y);
      if (g > 1) r = pack_bf16(x - low_of(r), y - high_of(r));
      a.r[2 * i] = r;
    }
    return a;
  }
  // A with every element passed through f.
  template <class F>
  static __device__ __forceinline__ A mapped(const A& a, F f) {
    A m;
    for (int i = 0; i < 4; ++i) m.r[i] = pack_bf16(f(low_of(a.r[i])), f(high_of(a.r[i])));
    return m;
  }
  // Weights of tokens as the matrix unit's number.
  using Weight = __nv_bfloat16;
  // Scales column k of A by weight[k].
  static __device__ __forceinline__ A scaled(const A& a, const Weight* weight, int k, int lane) {
    const int t = lane & 3;
    A s;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const __nv_bfloat162 w = *reinterpret_cast<const __nv_bfloat162*>(weight + k + 2 * t + 8 * i);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const __nv_bfloat162 x = __hmul2(reinterpret_cast<const __nv_bfloat162&>(a.r[2 * i + j]), w);
        s.r[2 * i + j] = reinterpret_cast<const std::uint32_t&>(x);
      }
    }
    return s;
  }
  // Part `part` of the same product, split into parts that add up to a float.
  static constexpr int kParts = 3;
  static __device__ __forceinline__ A scaled_part(const A& a, const float* weight, int k, int lane, int part) {
    const int t = lane & 3;
    A s;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 w = *reinterpret_cast<const float2*>(weight + k + 2 * t + 8 * (i / 2));
      float x = low_of(a.r[i]) * w.x, y = high_of(a.r[i]) * w.y;
      std::uint32_t packed = pack_bf16(x, y);
      for (int n = 0; n < part; ++n) {
        x -= low_of(packed);
        y -= high_of(packed);
        packed = pack_bf16(x, y);
      }
      s.r[i] = packed;
    }
    return s;
  }
  // Scores of 16 rows against 16 tokens, two accumulator tiles, as one step of A.
  static __device__ __forceinline__ void pack_weights(Weights* w, const float (&c0)[4], const float (&c1)[4]) {
    w[0] = {{pack_bf16(c0[0], c0[1]), pack_bf16(c0[2], c0[3]), pack_bf16(c1[0], c1[1]), pack_bf16(c1[2], c1[3])}};
  }
  static __device__ __forceinline__ A weights_a(const Weights& w) {
    return w;
  }
  static __device__ __forceinline__ void store_pair(Tile tile, int offset, float x, float y) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(tile + 2 * offset), "r"(pack_bf16(x, y)) : "memory");
  }
};

// Float operands, m16n8k8 in TF32: one term for half-precision data, which TF32 holds exactly; six for float data, each
// number split into three parts, which keeps whole float products. Depth slot t stands for index 2t, slot t + 4 for 2t
// + 1.
template <int kTerms>
struct Tf32Engine {
  using Operand = float;
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
  struct Weights {
    float r[4];
  };

  static __device__ __forceinline__ std::uint32_t high(float x) {
    std::uint32_t y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
  }
  static __device__ __forceinline__ void step(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  struct Parts {
    std::uint32_t head, middle, tail;
  };
  static __device__ __forceinline__ Parts split(float x) {
    const std::uint32_t head = high(x);
    const float rest = x - __uint_as_float(head);
    const std::uint32_t middle = high(rest);
    return {head, middle, __float_as_uint(rest - __uint_as_float(middle))};
  }
  static __device__ __forceinline__ void multiply(float (&c)[4], const A& a, const B& b) {
    if constexpr (kTerms == 1) {
      const std::uint32_t ah[4] = {high(a.r[0]), high(a.r[1]), high(a.r[2]), high(a.r[3])};
      const std::uint32_t bh[2] = {high(b.r[0]), high(b.r[1])};
      step(c, ah, bh);
    } else {
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
      step(low, al, bh);
      step(low, ah, bl);
      step(low, am, bm);
      step(low, am, bh);
      step(low, ah, bm);
      step(d, ah, bh);
#pragma unroll
      for (int i = 0; i < 4; ++i) c[i] += d[i] + low[i];
    }
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
      const float head = __uint_as_float(high(x));
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
      const float head = __uint_as_float(high(x));
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
  static constexpr int kParts = kTerms == 1 ? 3 : 1;
  static __device__ __forceinline__ A scaled_part(const A& a, const float* weight, int k, int lane, int part) {
    A s = scaled(a, weight, k, lane);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      for (int n = 0; n < part; ++n) s.r[i] -= __uint_as_float(high(s.r[i]));
    }
    return s;
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
