// Rows of keys, values, queries and output gradients, loaded into scratch for the backward pass (backward.h).
#pragma once

#include "kernels/cpu/body/state.h"

namespace cosformer::kernels::cpu {
namespace {

template <class T>
class BackwardRows {
 protected:
  BackwardRows(const HeadContext& head, const AttentionGradients& gradients, const BackwardScratch<T>& scratch)
      : head_(head), gradients_(gradients), x_(scratch), shape_(head.shape), packed_(scratch.half.left != nullptr) {}

  bool normalized() const { return head_.problem.normalizer == Normalizer::kSum; }

  // What rows are loaded for: only to advance a state, or for the gradients of a chunk's queries or keys too.
  enum class Use { kState, kQueryGradients, kKeyGradients };

  // The panels that bf16 rows are loaded into.
  enum Panel {
    kGrad,
    kGradPairs,
    kValueTurned,
    kValueColumns,
    kQueryColumns,
    kPhiQuery,
    kPhiQueryColumns,
    kPhiKeyTurned,
    // Never at the same time as the last two.
    kPhiKeyPairs = kPhiQueryColumns,
    kKeyPairs = kPhiKeyTurned,
    kKeyRows = kValueColumns,
  };
  const uint16_t* packed(Panel panel) const { return packed_ ? x_.half.kept[panel] : nullptr; }

  // In bf16 what keys add to z is left in x_.key, and what queries add to its gradient in x_.query.
  void load_chunk_keys(const Chunk& chunk, Use use) {
    if (chunk.keys == 0) return;
    if constexpr (kPacksRows<T>) {
      if (packed_) {
        RowPanels keys, values;
        keys.cosines = angles_.key_cos;
        keys.sines = angles_.key_sin;
        if (use == Use::kKeyGradients) {
          keys.plain = x_.phi_k;
          keys.wide_rows = x_.half.kept[kKeyRows];
          keys.turned = x_.half.kept[kPhiKeyTurned];
        } else {
          keys.wide_pairs = x_.half.kept[kKeyPairs];
          keys.sum = x_.key;
          values.columns = x_.half.kept[kValueColumns];
        }
        if (use == Use::kQueryGradients) keys.pairs = x_.half.kept[kPhiKeyPairs];
        if (use != Use::kState) values.turned = x_.half.kept[kValueTurned];
        load_half_keys(head_, chunk, keys);
        load_half_values(head_, chunk, values);
        return;
      }
    }
    load_keys(head_, chunk, angles_.key_cos, angles_.key_sin, x_.phi_k, x_.key);
    load_values(head_, chunk, x_.value);
  }

  // After load_gradients.
  void load_chunk_queries(const Chunk& chunk, [[maybe_unused]] Use use) {
    if constexpr (kPacksRows<T>) {
      if (packed_) {
        RowPanels queries;
        queries.cosines = angles_.query_cos;
        queries.sines = angles_.query_sin;
        if (use == Use::kQueryGradients) {
          queries.plain = x_.phi_q;
        } else {
          queries.wide_columns = x_.half.kept[kQueryColumns];
          queries.sum = x_.query;
          queries.weights = x_.grad_sum;
        }
        if (use == Use::kKeyGradients) {
          queries.rows = x_.half.kept[kPhiQuery];
          queries.columns = x_.half.kept[kPhiQueryColumns];
        }
        load_half_queries(head_, chunk, queries);
        return;
      }
    }
    if (use == Use::kQueryGradients) {
      load_queries<T>(head_, chunk, nullptr, nullptr, x_.phi_q, nullptr);
      return;
    }
    load_queries(head_, chunk, angles_.query_cos, angles_.query_sin, x_.phi_q, x_.query);
  }

  // g = dout/s and e = −(dout·out)/s; where s was clamped, g = dout/eps and e = 0.
  void load_gradients(const Chunk& chunk, [[maybe_unused]] Use use) {
    if constexpr (kPacksRows<T>) {
      if (packed_) {
        RowPanels rows;
        if (use != Use::kState) rows.rows = x_.half.kept[kGrad];
        if (use != Use::kQueryGradients) rows.pairs = x_.half.kept[kGradPairs];
        load_half_gradients(head_, gradients_, chunk, x_.grad_sum, x_.raw, rows);
        return;
      }
    }
    const AttentionProblem& problem = head_.problem;
    const Index batch = head_.sequence.batch, first = head_.sequence.q_begin + chunk.begin, width = shape_.value_dim;
    const auto always = [](Index) { return true; };
    load_rows(problem.dtype, row_at(gradients_.dout, problem.dtype, batch, first, head_.head),
              gradients_.dout.time_stride, chunk.queries, problem.value_dim, width, always, x_.grad);
    if (!normalized()) {
      fill_zero(x_.grad_sum, chunk.queries);
      return;
    }
    load_rows(problem.dtype, row_at(problem.out, problem.dtype, batch, first, head_.head), problem.out.time_stride,
              chunk.queries, problem.value_dim, width, always, x_.raw);
    add_row_products(x_.grad, width, x_.raw, width, chunk.queries, width, T(0), x_.grad_sum);
    const auto eps = static_cast<T>(problem.eps);
    const View& view = problem.denominator;
    const T* sums = static_cast<const T*>(view.data) + batch * view.batch_stride + first * view.time_stride +
                    head_.head * view.head_stride;
    for (Index i = 0; i < chunk.queries; ++i) {
      const T row_sum = sums[i * view.time_stride];
      const bool clamped = row_sum < eps;
      const Inverse<T> inverse = invert(clamped ? eps : row_sum);
      x_.grad_sum[i] = clamped ? T(0) : -x_.grad_sum[i] / row_sum;
      T* row = x_.grad + i * width;
      for (Index e = 0; e < width; e += kLanes<T>) store(row + e, divide<T>(load(row + e), inverse));
    }
  }

  HeadContext head_;
  const AttentionGradients& gradients_;
  const BackwardScratch<T> x_;
  const PaddedShape shape_;
  const bool packed_;  // bf16 rows go straight into panels
  AngleTables<T> angles_;
};

}  // namespace
}  // namespace cosformer::kernels::cpu
