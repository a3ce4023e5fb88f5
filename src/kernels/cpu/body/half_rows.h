// Rows of a bf16 problem straight into the panels that its products read (half_gemm.h): rounded once, when they are
// loaded, and written in every arrangement that a pass needs. The detour over float32 arrays and packing them for each
// product was most of a pass's time.
#pragma once

#include "kernels/cpu/body/angles.h"
#include "kernels/cpu/body/half_gemm.h"

namespace cosformer::kernels::cpu {
namespace {

// Where rows x [count, width] go; null: not wanted. With t tokens, padded to whole panel steps:
struct RowPanels {
  float* plain = nullptr;       // x as it is, [t, width]
  uint16_t* rows = nullptr;     // x as a left factor, [t, width]
  uint16_t* columns = nullptr;  // xᵀ as a left factor, [width, t]
  uint16_t* pairs = nullptr;    // x as a right factor, [t/2, width, 2]
  uint16_t* turned = nullptr;   // xᵀ as a right factor, [width/2, t, 2]
  // The same of x·(cos, sin), [t, 2·width].
  uint16_t* wide_rows = nullptr;
  uint16_t* wide_columns = nullptr;
  uint16_t* wide_pairs = nullptr;
  const float *cosines = nullptr, *sines = nullptr;  // [count]
  // sum [2·width] = Σ_t weights[t]·x[t]·(cos, sin); weights null: all one.
  float* sum = nullptr;
  const float* weights = nullptr;
  // row_product[t] = keep·row_product[t] + x[t]·(cos, sin)·with [2·width]
  float* row_product = nullptr;
  const float* with = nullptr;
  float keep = 0;
};

}  // namespace
}  // namespace cosformer::kernels::cpu

#if defined(COSFORMER_BF16_DOT) || defined(COSFORMER_BF16_TILES)

namespace cosformer::kernels::cpu {
namespace {

template <class T>
constexpr bool kPacksRows = sizeof(T) == sizeof(float);

COSFORMER_INLINE void store_half(uint16_t* to, Vector<float> x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(x))));
}

COSFORMER_INLINE void store_pair(uint16_t* to, Vector<float> first, Vector<float> second) {
  _mm512_storeu_si512(to,
                      interleave_halves(round_pair(reinterpret_cast<__m512>(first), reinterpret_cast<__m512>(second))));
}

// Writes the block of 16 tokens from t0 and 16 numbers from i0.
class BlockWriter {
 public:
  BlockWriter(const RowPanels& panels, Index count, Index width)
      : p_(panels),
        width_(width),
        depth_(round_up(width, kPanelDepth)),
        tokens_(round_up(count, kPanelDepth)),
        columns_(round_up(count, kTileSide)) {}

  COSFORMER_INLINE void write(Vector<float>* x, Index t0, Index i0, const float* cosines, const float* sines) {
    if (p_.plain != nullptr && i0 < width_) {
      COSFORMER_UNROLL for (int r = 0; r < kTileSide; ++r) store(p_.plain + (t0 + r) * width_ + i0, x[r]);
    }
    if (p_.rows != nullptr) {
      COSFORMER_UNROLL for (int r = 0; r < kTileSide; ++r) store_half(p_.rows + (t0 + r) * depth_ + i0, x[r]);
    }
    if (p_.pairs != nullptr && i0 < width_) {
      COSFORMER_UNROLL for (int r = 0; r < kTileSide; r += 2) {
        store_pair(p_.pairs + ((t0 + r) / 2 * width_ + i0) * 2, x[r], x[r + 1]);
      }
    }
    if (p_.wide_rows != nullptr && i0 < width_) {
      COSFORMER_UNROLL for (int r = 0; r < kTileSide; ++r) {
        uint16_t* to = p_.wide_rows + (t0 + r) * 2 * width_ + i0;
        store_half(to, x[r] * cosines[r]);
        store_half(to + width_, x[r] * sines[r]);
      }
    }
    if (p_.wide_pairs != nullptr && i0 < width_) {
      COSFORMER_UNROLL for (int r = 0; r < kTileSide; r += 2) {
        uint16_t* to = p_.wide_pairs + ((t0 + r) / 2 * 2 * width_ + i0) * 2;
        store_pair(to, x[r] * cosines[r], x[r + 1] * cosines[r + 1]);
        store_pair(to + 2 * width_, x[r] * sines[r], x[r + 1] * sines[r + 1]);
      }
    }
    if (p_.columns == nullptr && p_.turned == nullptr && p_.wide_columns == nullptr) return;
    transpose_block<float, 8>(x);
    if (p_.columns != nullptr && i0 < width_) {
      COSFORMER_UNROLL for (int i = 0; i < kTileSide; ++i) store_half(p_.columns + (i0 + i) * tokens_ + t0, x[i]);
    }
    if (p_.turned != nullptr && t0 < columns_) {
      COSFORMER_UNROLL for (int i = 0; i < kTileSide; i += 2) {
        store_pair(p_.turned + ((i0 + i) / 2 * columns_ + t0) * 2, x[i], x[i + 1]);
      }
    }
    if (p_.wide_columns != nullptr && i0 < width_) {
      const Vector<float> cosine = load(cosines), sine = load(sines);
      COSFORMER_UNROLL for (int i = 0; i < kTileSide; ++i) {
        store_half(p_.wide_columns + (i0 + i) * tokens_ + t0, x[i] * cosine);
        store_half(p_.wide_columns + (width_ + i0 + i) * tokens_ + t0, x[i] * sine);
      }
    }
  }

 private:
  const RowPanels& p_;
  const Index width_, depth_, tokens_, columns_;
};

// block(t, i) gives 16 numbers of row t < count; called for whole vectors of the padded width only.
template <class Block>
COSFORMER_INLINE void write_panels(const RowPanels& panels, Index count, Index width, Block block) {
  BlockWriter writer(panels, count, width);
  const Vector<float> zero = {};
  const bool has_angles = panels.cosines != nullptr;
  if (panels.sum != nullptr) fill_zero(panels.sum, 2 * width);
  for (Index t0 = 0; t0 < round_up(count, kPanelDepth); t0 += kTileSide) {
    const Index here = count - t0 < 0 ? 0 : (count - t0 < kTileSide ? count - t0 : kTileSide);
    float cosines[kTileSide] = {}, sines[kTileSide] = {};
    for (Index r = 0; has_angles && r < here; ++r) {
      cosines[r] = panels.cosines[t0 + r];
      sines[r] = panels.sines[t0 + r];
    }
    Vector<float> products[kTileSide] = {};
    for (Index i0 = 0; i0 < round_up(width, kPanelDepth); i0 += kTileSide) {
      Vector<float> x[kTileSide];
      const Index rows = i0 < width ? here : 0;
      if (rows == kTileSide) {
        COSFORMER_UNROLL for (int r = 0; r < kTileSide; ++r) x[r] = block(t0 + r, i0);
      } else {
        for (int r = 0; r < kTileSide; ++r) x[r] = r < rows ? block(t0 + r, i0) : zero;
      }
      if (panels.sum != nullptr && i0 < width) {
        Vector<float> cosine_sums[2] = {}, sine_sums[2] = {};
        COSFORMER_UNROLL for (int r = 0; r < kTileSide; ++r) {
          const Vector<float> term = panels.weights == nullptr || r >= here ? x[r] : x[r] * panels.weights[t0 + r];
          cosine_sums[r % 2] += term * cosines[r];
          sine_sums[r % 2] += term * sines[r];
        }
        float *to = panels.sum + i0, *to_sine = to + width;
        store(to, load(to) + (cosine_sums[0] + cosine_sums[1]));
        store(to_sine, load(to_sine) + (sine_sums[0] + sine_sums[1]));
      }
      if (panels.row_product != nullptr && i0 < width) {
        const Vector<float> with_cosine = load(panels.with + i0), with_sine = load(panels.with + width + i0);
        COSFORMER_UNROLL for (int r = 0; r < kTileSide; ++r) {
          products[r] += x[r] * (with_cosine * cosines[r] + with_sine * sines[r]);
        }
      }
      writer.write(x, t0, i0, cosines, sines);
    }
    if (panels.row_product != nullptr && here > 0) {
      Vector<float> result = sum_lanes<float, 8>(products);
      if (panels.keep != 0) result += load(panels.row_product + t0) * panels.keep;
      store(panels.row_product + t0, result);
    }
  }
}

// 16 bf16 numbers of a row of n from i on, zero behind its end.
COSFORMER_INLINE Vector<float> load_half(const uint16_t* row, Index i, Index n) {
  const __mmask16 mask = n - i >= 16 ? 0xffff : static_cast<__mmask16>((1U << (n - i)) - 1U);
  typedef uint16_t Narrow __attribute__((vector_size(32)));
  typedef uint32_t Wide __attribute__((vector_size(64)));
  const auto bits = reinterpret_cast<Narrow>(_mm256_maskz_loadu_epi16(mask, row + i));
  return reinterpret_cast<Vector<float>>(__builtin_convertvector(bits, Wide) << 16);
}

// φ of rows that lie `stride` apart.
template <class Present>
void load_half_features(const HeadContext& head, const void* from, Index stride, Index count, Present present,
                        const RowPanels& panels) {
  const Index n = head.problem.dim;
  const FeatureMap map = head.problem.feature_map;
  const auto* first = static_cast<const uint16_t*>(from);
  const Vector<float> zero = {};
  const auto write = [&](auto transform) {
    write_panels(panels, count, head.shape.dim, [&](Index t, Index i) {
      return present(t) ? transform(load_half(first + t * stride, i, n), i) : zero;
    });
  };
  if (map == FeatureMap::kRelu) {
    write([&](Vector<float> x, Index) { return x < 0 ? zero : x; });
  } else {
    write([&](Vector<float> x, Index i) { return first_lanes<float>(map_features<float>(map, x), n - i); });
  }
}

[[maybe_unused]] void load_half_queries(const HeadContext& head, const Chunk& chunk, const RowPanels& panels) {
  const AttentionProblem& problem = head.problem;
  load_half_features(
      head, row_at(problem.q, problem.dtype, head.sequence.batch, head.sequence.q_begin + chunk.begin, head.head),
      problem.q.time_stride, chunk.queries, [](Index) { return true; }, panels);
}

[[maybe_unused]] void load_half_keys(const HeadContext& head, const Chunk& chunk, const RowPanels& panels) {
  const AttentionProblem& problem = head.problem;
  const void* from =
      row_at(problem.k, problem.dtype, head.sequence.batch, head.sequence.k_begin + chunk.begin, head.head);
  if (problem.key_mask == nullptr) {
    load_half_features(
        head, from, problem.k.time_stride, chunk.keys, [](Index) { return true; }, panels);
  } else {
    load_half_features(
        head, from, problem.k.time_stride, chunk.keys, [&](Index t) { return key_present(head, chunk.begin + t); },
        panels);
  }
}

[[maybe_unused]] void load_half_values(const HeadContext& head, const Chunk& chunk, const RowPanels& panels) {
  const AttentionProblem& problem = head.problem;
  const auto* first = static_cast<const uint16_t*>(
      row_at(problem.v, problem.dtype, head.sequence.batch, head.sequence.k_begin + chunk.begin, head.head));
  const Vector<float> zero = {};
  write_panels(panels, chunk.keys, head.shape.value_dim, [&](Index t, Index i) {
    return key_present(head, chunk.begin + t) ? load_half(first + t * problem.v.time_stride, i, problem.value_dim)
                                              : zero;
  });
}

// g = dout/s, and grad_sum = e = −(dout·out)/s; where s was clamped, g = dout/eps and e = 0. `inverses` [2,
// chunk] is written on the way. Without a normalizer g = dout and e = 0.
[[maybe_unused]] void load_half_gradients(const HeadContext& head, const AttentionGradients& gradients,
                                          const Chunk& chunk, float* grad_sum, float* inverses,
                                          const RowPanels& panels) {
  const AttentionProblem& problem = head.problem;
  const Index batch = head.sequence.batch, first = head.sequence.q_begin + chunk.begin, n = problem.value_dim;
  const auto* dout = static_cast<const uint16_t*>(row_at(gradients.dout, problem.dtype, batch, first, head.head));
  const Index stride = gradients.dout.time_stride;
  if (problem.normalizer != Normalizer::kSum) {
    fill_zero(grad_sum, chunk.queries);
    write_panels(panels, chunk.queries, head.shape.value_dim,
                 [&](Index t, Index i) { return load_half(dout + t * stride, i, n); });
    return;
  }
  const auto* out = static_cast<const uint16_t*>(row_at(problem.out, problem.dtype, batch, first, head.head));
  const View& view = problem.denominator;
  const float* sums = static_cast<const float*>(view.data) + batch * view.batch_stride + first * view.time_stride +
                      head.head * view.head_stride;
  const auto eps = static_cast<float>(problem.eps);
  for (Index t0 = 0; t0 < chunk.queries; t0 += kTileSide) {
    const Index here = chunk.queries - t0 < kTileSide ? chunk.queries - t0 : kTileSide;
    Vector<float> products[kTileSide] = {};
    for (Index r = 0; r < here; ++r) {
      for (Index i = 0; i < n; i += kTileSide) {
        products[r] +=
            load_half(dout + (t0 + r) * stride, i, n) * load_half(out + (t0 + r) * problem.out.time_stride, i, n);
      }
    }
    float inner[kTileSide];
    store(inner, sum_lanes<float, 8>(products));
    for (Index r = 0; r < here; ++r) {
      const float row_sum = sums[(t0 + r) * view.time_stride];
      const bool clamped = row_sum < eps;
      const Inverse<float> inverse = invert(clamped ? eps : row_sum);
      inverses[t0 + r] = inverse.value;
      inverses[head.shape.chunk + t0 + r] = inverse.error;
      grad_sum[t0 + r] = clamped ? 0.0F : -inner[r] / row_sum;
    }
  }
  write_panels(panels, chunk.queries, head.shape.value_dim, [&](Index t, Index i) {
    return divide<float>(load_half(dout + t * stride, i, n), {inverses[t], inverses[head.shape.chunk + t]});
  });
}

}  // namespace
}  // namespace cosformer::kernels::cpu

#else

namespace cosformer::kernels::cpu {
namespace {

template <class T>
constexpr bool kPacksRows = false;

[[maybe_unused]] void load_half_queries(const HeadContext&, const Chunk&, const RowPanels&) {}
[[maybe_unused]] void load_half_keys(const HeadContext&, const Chunk&, const RowPanels&) {}
[[maybe_unused]] void load_half_values(const HeadContext&, const Chunk&, const RowPanels&) {}
template <class T>
void load_half_gradients(const HeadContext&, const AttentionGradients&, const Chunk&, T*, T*, const RowPanels&) {}

}  // namespace
}  // namespace cosformer::kernels::cpu

#endif
