// The forward pass over one segment of one head: inside a chunk the quadratic form, across chunks the state.
#pragma once

#include "kernels/cpu/body/decode.h"

namespace cosformer::kernels::cpu {
namespace {

template <class T>
class ForwardSegment {
 public:
  ForwardSegment(const HeadContext& head, const ForwardScratch<T>& scratch, Segment segment)
      : head_(head), x_(scratch), shape_(head.shape), segment_(segment) {}

  // What the keys of this segment add to the state, left in scratch.state.
  void sum_keys(Scan scan) {
    fill_zero(x_.state, shape_.state);
    for (Index step = 0; step < chunks(); ++step) {
      const Chunk chunk = chunk_of(step, scan);
      prepare_chunk(head_, x_.angles, chunk, scan);
      load_chunk_keys(chunk);
      look_ahead(step, scan, true, false);
      advance_state(chunk);
    }
  }

  // Every query against one state that all keys are in.
  void read_whole_state(const T* state) {
    for (Index step = 0; step < chunks(); ++step) {
      const Chunk chunk = chunk_of(step, Scan::kFromLeft);
      if (chunk.queries == 0) continue;
      prepare_chunk(head_, x_.angles, chunk, Scan::kFromLeft);
      load_chunk_queries(chunk);
      look_ahead(step, Scan::kFromLeft, false, true);
      read_state(chunk, state, 0);
      write_rows(chunk);
    }
  }

  // One scan with the state in scratch.state. The one from the right leaves its sums in scratch, and the one from the
  // left adds them to its own (both_sides) and writes the rows.
  void scan(Scan scan, bool both_sides, ExternalState<T> state_out) {
    prepare_toeplitz(head_, x_.angles, scan);
    for (Index step = 0; step < chunks(); ++step) {
      const Chunk chunk = chunk_of(step, scan);
      prepare_chunk(head_, x_.angles, chunk, scan);
      load_chunk_keys(chunk);
      look_ahead(step, scan, true, true);
      if (chunk.queries > 0) {
        T* const sum = x_.sum;
        T* const row_sum = x_.row_sum;
        if (both_sides) {
          const Index slot = (scan == Scan::kFromLeft ? step : chunks() - 1 - step) * shape_.chunk;
          x_.sum = x_.from_right + slot * shape_.value_dim;
          x_.row_sum = x_.row_from_right + slot;
        }
        load_chunk_queries(chunk);
        read_state(chunk, x_.state, both_sides && scan == Scan::kFromLeft ? T(1) : T(0));
        read_chunk(chunk, scan);
        if (scan == Scan::kFromLeft) write_rows(chunk);
        x_.sum = sum;
        x_.row_sum = row_sum;
      }
      advance_state(chunk);
      const Index index = scan == Scan::kFromLeft ? segment_.begin + step : -1;
      if (index + 1 == head_.grid.key_chunks) export_state(head_, x_.state, StateLayout::kFeatureRows, state_out);
    }
  }

  // The one chunk of a decode step, on the caller's state.
  void decode(ExternalState<T> from, ExternalState<T> to) {
    const Chunk chunk = chunk_of(0, Scan::kFromLeft);
    prepare_toeplitz(head_, x_.angles, Scan::kFromLeft);
    prepare_chunk(head_, x_.angles, chunk, Scan::kFromLeft);
    load_chunk_keys(chunk);
    load_chunk_queries(chunk);
    const auto decay = static_cast<T>(x_.angles.decay_power[chunk.length]);
    stream_state(head_, chunk.length, x_.query, x_.key, x_.value, decay, from, to, x_.sum, x_.row_sum);
    read_chunk(chunk, Scan::kFromLeft);
    write_rows(chunk);
  }

 private:
  bool normalized() const { return head_.problem.normalizer == Normalizer::kSum; }
  Index chunks() const { return segment_.end - segment_.begin; }

  Chunk chunk_of(Index step, Scan scan) const {
    return chunk_at(head_.grid, scan == Scan::kFromLeft ? segment_.begin + step : segment_.end - 1 - step);
  }

  // Starts fetching what the next chunk of a scan reads and writes.
  void look_ahead(Index step, Scan scan, bool keys, bool queries) {
    ahead_.restart(!keys ? 6 : (queries && shape_.dim > 32 ? 1 : 2));
    if (step + 1 == chunks()) return;
    const Chunk next = chunk_of(step + 1, scan);
    const AttentionProblem& problem = head_.problem;
    const Index batch = head_.sequence.batch, q_time = head_.sequence.q_begin + next.begin;
    const Index k_time = head_.sequence.k_begin + next.begin;
    if (keys) {
      ahead_.add(problem.k, problem.dtype, batch, k_time, head_.head, next.keys, problem.dim);
      ahead_.add(problem.v, problem.dtype, batch, k_time, head_.head, next.keys, problem.value_dim);
    }
    if (queries) {
      ahead_.add(problem.q, problem.dtype, batch, q_time, head_.head, next.queries, problem.dim);
    }
  }

  void load_chunk_keys(const Chunk& chunk) {
    if (chunk.keys == 0) return;
    load_keys(head_, chunk, x_.angles.key_cos, x_.angles.key_sin, x_.phi_k, x_.key);
    load_values(head_, chunk, x_.value);
  }

  void load_chunk_queries(const Chunk& chunk) {
    load_queries(head_, chunk, x_.angles.query_cos, x_.angles.query_sin, x_.phi_q, x_.query);
  }

  // sum = keep·sum + query·kv, and the same for the row sums with z
  void read_state(const Chunk& chunk, const T* state, T keep) {
    multiply<Layout::kRows, T>({x_.query, 2 * shape_.dim, state, shape_.value_dim, x_.sum, shape_.value_dim,
                                chunk.queries, shape_.value_dim, 2 * shape_.dim, keep, Band::kAll, &ahead_, x_.half});
    if (!normalized()) return;
    add_row_products(x_.query, 2 * shape_.dim, z_of(shape_, state), 0, chunk.queries, 2 * shape_.dim, keep, x_.row_sum);
  }

  // The pairs inside the chunk.
  void read_chunk(const Chunk& chunk, Scan scan) {
    if (chunk.keys == 0) return;
    const bool left = scan == Scan::kFromLeft;
    const Index columns = round_up(chunk.keys, kLanes<T>);
    transpose(x_.phi_k, shape_.dim, chunk.keys, shape_.dim, x_.phi_kt, shape_.chunk);
    multiply<Layout::kRows, T>({x_.phi_q, shape_.dim, x_.phi_kt, shape_.chunk, x_.score, shape_.chunk, chunk.queries,
                                columns, shape_.dim, T(0), left ? Band::kTilesUpToRow : Band::kTilesFromRow, &ahead_,
                                x_.half});
    apply_toeplitz<T>(x_.angles, chunk.queries, chunk.keys, shape_.chunk, scan, nullptr, x_.score);
    multiply<Layout::kRows, T>({x_.score, shape_.chunk, x_.value, shape_.value_dim, x_.sum, shape_.value_dim,
                                chunk.queries, shape_.value_dim, chunk.keys, T(1),
                                left ? Band::kUpToRow : Band::kFromRow, &ahead_, x_.half});
    if (!normalized()) return;
    add_row_products<T>(x_.score, shape_.chunk, nullptr, 0, chunk.queries, columns, T(1), x_.row_sum);
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
    const auto decay = static_cast<T>(x_.angles.decay_power[chunk.length]);
    if (chunk.keys == 0 && decay == 1) return;
    multiply<Layout::kColumns, T>({x_.key, 2 * shape_.dim, x_.value, shape_.value_dim, x_.state, shape_.value_dim,
                                   2 * shape_.dim, shape_.value_dim, chunk.keys, decay, Band::kAll, &ahead_, x_.half});
    add_rows<T>(x_.key, 2 * shape_.dim, nullptr, chunk.keys, 2 * shape_.dim, decay, z_of(shape_, x_.state));
  }

  const HeadContext& head_;
  ForwardScratch<T> x_;
  const PaddedShape shape_;
  const Segment segment_;
  Ahead ahead_;
};

}  // namespace
}  // namespace cosformer::kernels::cpu
