// The forward pass over one segment of some heads: inside a chunk the quadratic form, across chunks the state.
#pragma once

#include "kernels/cpu/body/decode.h"

namespace cosformer::kernels::cpu {
namespace {

template <class T>
class ForwardSegment {
 public:
  // `head` is the first of `heads`.
  ForwardSegment(const HeadContext& head, Index heads, const ForwardScratch<T>& scratch, Segment segment)
      : head_(head),
        heads_(head, heads),
        x_(scratch),
        shape_(head.shape),
        segment_(segment),
        packed_(scratch.half.left != nullptr) {
    for_heads([this] { prepare_offsets(head_, angles_); });
    turn_to(0);
  }

  // Turns to head h of those that go together, and calls body for each of them.
  void turn_to(Index h) {
    head_.head = heads_.first + h;
    angles_ = x_.angles[heads_.tables_of(h)];
    state_ = x_.state + h * shape_.state;
  }
  template <class Body>
  void for_heads(Body body) {
    for (Index h = 0; h < heads_.count; ++h) {
      turn_to(h);
      body();
    }
  }
  // The head turned to, and its state.
  const HeadContext& head() const { return head_; }
  T* state() { return state_; }

  // What the keys of this segment add to the state.
  void sum_keys(Scan scan) {
    for_heads([this] { fill_zero(state_, shape_.state); });
    for_chunks(scan, [&](Index step, const Chunk& chunk) {
      load_chunk_keys(chunk, false);
      look_ahead(step, scan, true, false);
      advance_state(chunk);
    });
  }

  // Every query against the state, which all keys are in.
  void read_whole_state() {
    for_chunks(Scan::kFromLeft, [&](Index step, const Chunk& chunk) {
      if (chunk.queries == 0) return;
      load_chunk_queries(chunk, false, 0);
      look_ahead(step, Scan::kFromLeft, false, true);
      read_state(chunk, 0);
      write_rows(chunk);
    });
  }

  // One scan from the state. The one from the right leaves its sums in scratch, and the one from the left adds them to
  // its own (both_sides) and writes the rows and the caller's state.
  void scan(Scan scan, bool both_sides) {
    for_heads([&] { prepare_toeplitz(head_, angles_, scan); });
    for_chunks(scan, [&](Index step, const Chunk& chunk) {
      load_chunk_keys(chunk, true);
      look_ahead(step, scan, true, true);
      if (chunk.queries > 0) {
        T* const sum = x_.sum;
        T* const row_sum = x_.row_sum;
        if (both_sides) {
          const Index slot = (scan == Scan::kFromLeft ? step : chunks() - 1 - step) * shape_.chunk;
          x_.sum = x_.from_right + slot * shape_.value_dim;
          x_.row_sum = x_.row_from_right + slot;
        }
        const T keep = both_sides && scan == Scan::kFromLeft ? T(1) : T(0);
        load_chunk_queries(chunk, true, keep);
        read_state(chunk, keep);
        read_chunk(chunk, scan);
        if (head_.problem.causal) keep_future_out(chunk);
        if (scan == Scan::kFromLeft) write_rows(chunk);
        x_.sum = sum;
        x_.row_sum = row_sum;
      }
      advance_state(chunk);
      if (scan == Scan::kFromLeft && segment_.begin + step + 1 == head_.grid.key_chunks) export_state_out();
    });
  }

  // The state after the last key, for the caller.
  void export_state_out() {
    const AttentionProblem& problem = head_.problem;
    export_state(head_, state_, StateLayout::kFeatureRows,
                 external_state<T>(head_, problem.state_kv_out, problem.state_z_out));
  }

  // The one chunk of a decode step, on the caller's state.
  void decode(ExternalState<T> from, ExternalState<T> to) {
    const Chunk chunk = chunk_of(0, Scan::kFromLeft);
    packed_ = false;
    x_.half = {};  // too little to multiply for rounding to be worth it
    prepare_toeplitz(head_, angles_, Scan::kFromLeft);
    prepare_chunk(head_, angles_, chunk, Scan::kFromLeft);
    load_chunk_keys(chunk, true);
    load_chunk_queries(chunk, true, 0);
    const auto decay = static_cast<T>(angles_.decay_power[chunk.length]);
    stream_state(head_, chunk.length, x_.query, x_.key, x_.value, decay, from, to, x_.sum, x_.row_sum);
    score_chunk(chunk, Scan::kFromLeft);
    add_values_by_row(chunk);
    write_rows(chunk);
  }

 private:
  bool normalized() const { return head_.problem.normalizer == Normalizer::kSum; }
  Index chunks() const { return segment_.end - segment_.begin; }

  Chunk chunk_of(Index step, Scan scan) const {
    return chunk_at(head_.grid, scan == Scan::kFromLeft ? segment_.begin + step : segment_.end - 1 - step);
  }

  // Every chunk of every head, chunk by chunk.
  template <class Body>
  void for_chunks(Scan scan, Body body) {
    for (Index step = 0; step < chunks(); ++step) {
      const Chunk chunk = chunk_of(step, scan);
      for_heads([&] {
        if (heads_.needs_tables(head_)) prepare_chunk(head_, angles_, chunk, scan);
        body(step, chunk);
      });
    }
  }

  // Starts fetching what comes next: the chunk of the next head, or the next chunk of the first.
  void look_ahead(Index step, Scan scan, bool keys, bool queries) {
    ahead_.restart(!keys ? 6 : (queries && shape_.dim > 32 ? 1 : 2));
    const bool is_last_head = head_.head + 1 == heads_.first + heads_.count;
    if (is_last_head && step + 1 == chunks()) return;
    const Chunk next = chunk_of(is_last_head ? step + 1 : step, scan);
    const Index head = is_last_head ? heads_.first : head_.head + 1;
    const AttentionProblem& problem = head_.problem;
    const Index batch = head_.sequence.batch, q_time = head_.sequence.q_begin + next.begin;
    const Index k_time = head_.sequence.k_begin + next.begin;
    if (keys) {
      ahead_.add(problem.k, problem.dtype, batch, k_time, head, next.keys, problem.dim);
      ahead_.add(problem.v, problem.dtype, batch, k_time, head, next.keys, problem.value_dim);
    }
    if (queries) {
      ahead_.add(problem.q, problem.dtype, batch, q_time, head, next.queries, problem.dim);
    }
  }

  // The panels that bf16 rows are loaded into.
  enum Panel { kQuery, kPhiQuery, kPhiKey, kKey, kValue };
  const uint16_t* packed(Panel panel) const { return packed_ ? x_.half.kept[panel] : nullptr; }

  // `inside`: for the pairs inside the chunk too. In bf16 what the keys add to z is left in x_.key.
  void load_chunk_keys(const Chunk& chunk, bool inside) {
    if (chunk.keys == 0) return;
    if constexpr (kPacksRows<T>) {
      if (packed_) {
        RowPanels keys, values;
        keys.cosines = angles_.key_cos;
        keys.sines = angles_.key_sin;
        keys.wide_columns = x_.half.kept[kKey];
        if (inside) keys.turned = x_.half.kept[kPhiKey];
        keys.sum = x_.key;
        values.pairs = x_.half.kept[kValue];
        load_half_keys(head_, chunk, keys);
        load_half_values(head_, chunk, values);
        return;
      }
    }
    load_keys(head_, chunk, angles_.key_cos, angles_.key_sin, x_.phi_k, x_.key);
    load_values(head_, chunk, x_.value);
  }

  // In bf16 with their row sums, keep·row_sum + query·z.
  void load_chunk_queries(const Chunk& chunk, bool inside, [[maybe_unused]] T keep) {
    if constexpr (kPacksRows<T>) {
      if (packed_) {
        RowPanels queries;
        queries.cosines = angles_.query_cos;
        queries.sines = angles_.query_sin;
        queries.wide_rows = x_.half.kept[kQuery];
        if (inside) queries.rows = x_.half.kept[kPhiQuery];
        if (normalized()) queries.row_product = x_.row_sum;
        queries.with = z_of(shape_, state_);
        queries.keep = keep;
        load_half_queries(head_, chunk, queries);
        return;
      }
    }
    load_queries(head_, chunk, angles_.query_cos, angles_.query_sin, x_.phi_q, x_.query);
  }

  // sum = keep·sum + query·kv, and the same for the row sums with z
  void read_state(const Chunk& chunk, T keep) {
    add_state(chunk, keep);
    if (!normalized() || packed_) return;
    add_row_products(x_.query, 2 * shape_.dim, z_of(shape_, state_), 0, chunk.queries, 2 * shape_.dim, keep,
                     x_.row_sum);
  }

  void add_state(const Chunk& chunk, T keep) {
    multiply<Layout::kRows, T>({x_.query, 2 * shape_.dim, state_, shape_.value_dim, x_.sum, shape_.value_dim,
                                chunk.queries, shape_.value_dim, 2 * shape_.dim, keep, Band::kAll, &ahead_, x_.half,
                                packed(kQuery)});
  }

  // The pairs inside the chunk.
  void read_chunk(const Chunk& chunk, Scan scan) {
    if (chunk.keys == 0) return;
    score_chunk(chunk, scan);
    multiply<Layout::kRows, T>({x_.score, shape_.chunk, x_.value, shape_.value_dim, x_.sum, shape_.value_dim,
                                chunk.queries, shape_.value_dim, chunk.keys, T(1),
                                scan == Scan::kFromLeft ? Band::kUpToRow : Band::kFromRow, &ahead_, x_.half, nullptr,
                                packed(kValue)});
  }

  // Their scores, and the row sums of those.
  void score_chunk(const Chunk& chunk, Scan scan) {
    const bool left = scan == Scan::kFromLeft;
    const Index columns = round_up(chunk.keys, kLanes<T>);
    if (!packed_) transpose(x_.phi_k, shape_.dim, chunk.keys, shape_.dim, x_.phi_kt, shape_.chunk);
    multiply<Layout::kRows, T>({x_.phi_q, shape_.dim, x_.phi_kt, shape_.chunk, x_.score, shape_.chunk, chunk.queries,
                                columns, shape_.dim, T(0), left ? Band::kTilesUpToRow : Band::kTilesFromRow, &ahead_,
                                x_.half, packed(kPhiQuery), packed(kPhiKey)});
    apply_toeplitz<T>(angles_, chunk.queries, chunk.keys, shape_.chunk, scan, nullptr, x_.score);
    if (!normalized()) return;
    add_row_products<T>(x_.score, shape_.chunk, nullptr, 0, chunk.queries, columns, T(1), x_.row_sum);
  }

  // Within a tile of a product a query also meets the values after it, with weight zero: 0·inf would reach it. Where
  // sums are not finite, the numerators are therefore computed again, each row from the values that it may see; other
  // rows come out as the same bits.
  void keep_future_out(const Chunk& chunk) {
    if (chunk.keys == 0 || all_finite(x_.sum, chunk.queries * shape_.value_dim)) return;
    add_state(chunk, 0);
    add_values_by_row(chunk);
  }

  void add_values_by_row(const Chunk& chunk) {
    if (packed_) load_values(head_, chunk, x_.value);
    for (Index i = 0; i < chunk.queries; ++i) {
      multiply<Layout::kRows, T>({x_.score + i * shape_.chunk, shape_.chunk, x_.value, shape_.value_dim,
                                  x_.sum + i * shape_.value_dim, shape_.value_dim, 1, shape_.value_dim,
                                  i + 1 < chunk.keys ? i + 1 : chunk.keys, T(1), Band::kAll, nullptr, x_.half});
    }
  }

  void write_rows(const Chunk& chunk) {
    const AttentionProblem& problem = head_.problem;
    const Index first = head_.sequence.q_begin + chunk.begin;
    if (normalized()) {
      const auto eps = static_cast<T>(problem.eps);
      const View& view = problem.denominator;
      const Index offset =
          head_.sequence.batch * view.batch_stride + first * view.time_stride + head_.head * view.head_stride;
      T* sums = view.data == nullptr ? nullptr : static_cast<T*>(view.data) + offset;
      for (Index i = 0; i < chunk.queries; ++i) {
        const T row_sum = x_.row_sum[i];
        if (sums != nullptr) sums[i * view.time_stride] = row_sum;
        x_.divisor[i] = row_sum < eps ? eps : row_sum;
      }
    }
    store_rows(problem.dtype, x_.sum, shape_.value_dim, normalized() ? x_.divisor : nullptr, chunk.queries,
               problem.value_dim, row_at(problem.out, problem.dtype, head_.sequence.batch, first, head_.head),
               problem.out.time_stride, head_.streams_results);
  }

  void advance_state(const Chunk& chunk) {
    const auto decay = static_cast<T>(angles_.decay_power[chunk.length]);
    if (chunk.keys == 0 && decay == 1) return;
    multiply<Layout::kColumns, T>({x_.key, 2 * shape_.dim, x_.value, shape_.value_dim, state_, shape_.value_dim,
                                   2 * shape_.dim, shape_.value_dim, chunk.keys, decay, Band::kAll, &ahead_, x_.half,
                                   packed(kKey), packed(kValue)});
    add_rows<T>(x_.key, 2 * shape_.dim, nullptr, packed_ && chunk.keys > 0 ? 1 : chunk.keys, 2 * shape_.dim, decay,
                z_of(shape_, state_));
  }

  HeadContext head_;
  const HeadGroup heads_;
  ForwardScratch<T> x_;
  const PaddedShape shape_;
  const Segment segment_;
  bool packed_;  // bf16 rows go straight into panels
  AngleTables<T> angles_;
  T* state_;
  Ahead ahead_;
};

}  // namespace
}  // namespace cosformer::kernels::cpu
