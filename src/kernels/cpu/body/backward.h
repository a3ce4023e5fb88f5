// The backward pass over one segment of some heads, from q, k, v, out and the row sums alone.
//
// Values count as having one more column of ones, whose output gradient is e (docs/method.md): then dφ(q) comes from
// the state of keys and values along a scan, and dφ(k) and dv from the state of queries and gradients against it.
#pragma once

#include "kernels/cpu/body/backward_rows.h"

namespace cosformer::kernels::cpu {
namespace {

// What a pass over a segment does: the scan it belongs to, whether the pairs inside chunks are part of it, and whether
// a scan of the other side has left its part in scratch (add_other) or this one has to (keep_for_other).
struct Sweep {
  Scan scan = Scan::kFromLeft;
  bool inside_chunks = true;
  bool keep_for_other = false, add_other = false;
};

template <class T>
class BackwardSegment : private BackwardRows<T> {
  using Rows = BackwardRows<T>;
  using Rows::angles_, Rows::gradients_, Rows::head_, Rows::packed_, Rows::shape_, Rows::x_;
  using Rows::kGrad, Rows::kGradPairs, Rows::kKeyPairs, Rows::kKeyRows, Rows::kPhiKeyPairs, Rows::kPhiKeyTurned;
  using Rows::kPhiQuery, Rows::kPhiQueryColumns, Rows::kQueryColumns, Rows::kValueColumns, Rows::kValueTurned;
  using Rows::load_chunk_keys, Rows::load_chunk_queries, Rows::load_gradients, Rows::packed;
  using typename Rows::Use;

 public:
  // `head` is the first of `heads`.
  BackwardSegment(const HeadContext& head, Index heads, const AttentionGradients& gradients,
                  const BackwardScratch<T>& scratch, Segment segment)
      : Rows(head, gradients, scratch),
        heads_(head, heads),
        segment_(segment),
        first_token_(segment.begin < segment.end ? chunk_at(head.grid, segment.begin).begin : 0) {
    for_heads([this] { prepare_offsets(head_, angles_); });
  }

  // Calls body for each of the heads that go together, turned to it.
  template <class Body>
  void for_heads(Body body) {
    for (Index h = 0; h < heads_.count; ++h) {
      head_.head = heads_.first + h;
      angles_ = x_.angles[heads_.tables_of(h)];
      state_ = x_.state + h * shape_.state;
      d_state_ = x_.d_state + h * shape_.state;
      decay_gradient_ = decay_gradients_ + h;
      body();
    }
  }
  // The head turned to, its state and the gradient of it.
  const HeadContext& head() const { return head_; }
  T* state() { return state_; }
  T* d_state() { return d_state_; }
  Index tokens() const { return segment_.tokens; }

  // What the keys and values of this segment add to the state.
  void sum_keys(Scan scan) {
    for_heads([this] { fill_zero(state_, shape_.state); });
    for_chunks(scan, true, [&](const Chunk& chunk, const Following& next) {
      load_chunk_keys(chunk, Use::kState);
      look_ahead(next, true, false);
      advance_state(chunk);
    });
  }

  // What the queries and gradients of this segment add to the gradient of the state.
  void sum_queries(Scan scan) {
    for_heads([this] { fill_zero(d_state_, shape_.state); });
    for_chunks(scan, false, [&](const Chunk& chunk, const Following& next) {
      receive_outgoing(chunk, scan);
      load_gradients(chunk, Use::kState);
      load_chunk_queries(chunk, Use::kState);
      look_ahead(next, false, true);
      advance_d_state(chunk);
    });
  }

  // dq, along the scan, from the state.
  void sweep_queries(const Sweep& sweep) {
    if (sweep.inside_chunks) for_heads([&] { prepare_toeplitz(head_, angles_, sweep.scan); });
    for_chunks(sweep.scan, true, [&](const Chunk& chunk, const Following& next) {
      if (sweep.inside_chunks) load_chunk_keys(chunk, Use::kQueryGradients);
      look_ahead(next, sweep.inside_chunks, true);
      if (chunk.queries > 0) query_gradients(chunk, sweep);
      if (!sweep.inside_chunks) return;
      advance_state(chunk);
      if (sweep.scan == Scan::kFromLeft && ends_keys(chunk)) meet_outgoing(chunk);
    });
  }

  // dk and dv, against the scan, from the gradient of the state.
  void sweep_keys(const Sweep& sweep) {
    if (sweep.inside_chunks) for_heads([&] { prepare_toeplitz(head_, angles_, sweep.scan); });
    for_chunks(sweep.scan, false, [&](const Chunk& chunk, const Following& next) {
      look_ahead(next, true, sweep.inside_chunks);
      if (sweep.inside_chunks) {
        receive_outgoing(chunk, sweep.scan);
        load_gradients(chunk, Use::kKeyGradients);
        load_chunk_queries(chunk, Use::kKeyGradients);
      }
      if (chunk.keys > 0) key_gradients(chunk, sweep);
      if (sweep.inside_chunks) advance_d_state(chunk);
    });
  }

  // Σ_i i·φ(q_i)·dφ(q_i) − Σ_j j·φ(k_j)·dφ(k_j) of the sweeps so far, positions counted along each scan from this
  // segment's first token, and what passes through the states at its ends, which the caller adds.
  double& decay_gradient() { return *decay_gradient_; }

 private:
  Index chunks() const { return segment_.end - segment_.begin; }
  Chunk chunk_along(Index step, Scan scan) const {
    return chunk_at(head_.grid, scan == Scan::kFromLeft ? segment_.begin + step : segment_.end - 1 - step);
  }
  // What comes after a chunk: the same chunk of the next head, or the next chunk of the first; no rows at the end.
  struct Following {
    Chunk chunk;
    Index head = 0;
  };

  // Every chunk of every head, chunk by chunk, along the scan or against it.
  template <class Body>
  void for_chunks(Scan scan, bool along, Body body) {
    const auto chunk_of = [&](Index step) { return chunk_along(along ? step : chunks() - 1 - step, scan); };
    for (Index step = 0; step < chunks(); ++step) {
      const Chunk chunk = chunk_of(step);
      const Chunk next = step + 1 < chunks() ? chunk_of(step + 1) : Chunk{};
      for_heads([&] {
        if (heads_.needs_tables(head_)) prepare_chunk(head_, angles_, chunk, scan);
        const bool is_last = head_.head + 1 == heads_.first + heads_.count;
        body(chunk, is_last ? Following{next, heads_.first} : Following{chunk, head_.head + 1});
      });
    }
  }
  bool ends_keys(const Chunk& chunk) const {
    return chunk.keys > 0 && chunk.begin + chunk.keys == head_.grid.key_length;
  }
  double position_along(const Chunk& chunk, Index t, Scan scan) const {
    const Index local = chunk.begin + t - first_token_;
    return static_cast<double>(scan == Scan::kFromLeft ? local : segment_.tokens - 1 - local);
  }

  ExternalState<T> d_state_out() const {
    return external_state<T>(head_, gradients_.d_state_kv_out, gradients_.d_state_z_out);
  }

  // The outgoing state is the one after the last key.
  void receive_outgoing(const Chunk& chunk, Scan scan) {
    if (scan == Scan::kFromLeft && ends_keys(chunk)) {
      add_external(head_, d_state_out(), StateLayout::kFeatureRows, d_state_);
    }
  }
  void meet_outgoing(const Chunk& chunk) {
    if (!wants_decay() || d_state_out().kv == nullptr) return;
    import_state(head_, d_state_out(), StateLayout::kFeatureRows, d_state_);
    *decay_gradient_ += position_along(chunk, chunk.length - 1, Scan::kFromLeft) *
                        inner_product(shape_, state_, StateLayout::kValueRows, d_state_, StateLayout::kFeatureRows);
  }

  // Starts fetching what comes next.
  void look_ahead(const Following& following, bool keys, bool queries) {
    const Chunk& next = following.chunk;
    const Index head = following.head;
    ahead_.restart(keys ? 2 : 4);
    const AttentionProblem& problem = head_.problem;
    const Index batch = head_.sequence.batch, q_time = head_.sequence.q_begin + next.begin;
    const Index k_time = head_.sequence.k_begin + next.begin;
    if (keys) {
      ahead_.add(problem.k, problem.dtype, batch, k_time, head, next.keys, problem.dim);
      ahead_.add(problem.v, problem.dtype, batch, k_time, head, next.keys, problem.value_dim);
    }
    if (queries) {
      ahead_.add(problem.q, problem.dtype, batch, q_time, head, next.queries, problem.dim);
      ahead_.add(gradients_.dout, problem.dtype, batch, q_time, head, next.queries, problem.value_dim);
      ahead_.add(problem.out, problem.dtype, batch, q_time, head, next.queries, problem.value_dim);
    }
  }

  // d_score[i][j] = (g_i·v_j + e_i)·weight of the pair
  void score_gradients(const Chunk& chunk, Scan scan) {
    multiply<Layout::kRows, T>({x_.grad, shape_.value_dim, x_.value_t, shape_.chunk, x_.d_score, shape_.chunk,
                                chunk.queries, round_up(chunk.keys, kLanes<T>), shape_.value_dim, T(0),
                                scan == Scan::kFromLeft ? Band::kTilesUpToRow : Band::kTilesFromRow, &ahead_, x_.half,
                                packed(kGrad), packed(kValueTurned)});
    apply_toeplitz<T>(angles_, chunk.queries, chunk.keys, shape_.chunk, scan, x_.grad_sum, x_.d_score);
  }

  void query_gradients(const Chunk& chunk, const Sweep& sweep) {
    const Index dim = shape_.dim;
    load_chunk_queries(chunk, Use::kQueryGradients);
    load_gradients(chunk, Use::kQueryGradients);
    multiply<Layout::kRows, T>({x_.grad, shape_.value_dim, state_, 2 * dim, x_.wide, 2 * dim, chunk.queries, 2 * dim,
                                shape_.value_dim, T(0), Band::kAll, &ahead_, x_.half, packed(kGrad)});
    const T* z = z_of(shape_, state_);
    for (Index i = 0; i < chunk.queries; ++i) {
      const T *wide = x_.wide + i * 2 * dim, cosine = angles_.query_cos[i], sine = angles_.query_sin[i];
      const T e = x_.grad_sum[i];
      T* to = x_.d_phi + i * dim;
      for (Index d = 0; d < dim; d += kLanes<T>) {
        store(to + d,
              (load(wide + d) + load(z + d) * e) * cosine + (load(wide + dim + d) + load(z + dim + d) * e) * sine);
      }
    }
    if (wants_decay()) {  // of the pairs that reach out of the chunk
      add_row_products(x_.phi_q, dim, x_.d_phi, dim, chunk.queries, dim, T(0), x_.row_product);
      count_decay(chunk, chunk.queries, sweep.scan, 1);
    }
    if (sweep.inside_chunks && chunk.keys > 0) {
      if (!packed_) transpose(x_.value, shape_.value_dim, chunk.keys, shape_.value_dim, x_.value_t, shape_.chunk);
      score_gradients(chunk, sweep.scan);
      multiply<Layout::kRows, T>({x_.d_score, shape_.chunk, x_.phi_k, dim, x_.d_phi, dim, chunk.queries, dim,
                                  chunk.keys, T(1), sweep.scan == Scan::kFromLeft ? Band::kUpToRow : Band::kFromRow,
                                  &ahead_, x_.half, nullptr, packed(kPhiKeyPairs)});
    }
    finish_rows(chunk, chunk.queries, sweep, x_.phi_q, x_.dq_from_right, head_.problem.q, gradients_.dq,
                head_.sequence.q_begin, [](Index) { return true; });
  }

  void key_gradients(const Chunk& chunk, const Sweep& sweep) {
    const Index dim = shape_.dim, value_dim = shape_.value_dim;
    const Index columns = round_up(chunk.keys, kLanes<T>);
    const bool left = sweep.scan == Scan::kFromLeft;
    load_chunk_keys(chunk, Use::kKeyGradients);
    if (!packed_) transpose(x_.value, value_dim, chunk.keys, value_dim, x_.value_t, shape_.chunk);
    multiply<Layout::kRows, T>({x_.key, 2 * dim, d_state_, value_dim, x_.d_value, value_dim, chunk.keys, value_dim,
                                2 * dim, T(0), Band::kAll, &ahead_, x_.half, packed(kKeyRows)});
    multiply<Layout::kRows, T>({d_state_, value_dim, x_.value_t, shape_.chunk, x_.wide, shape_.chunk, 2 * dim, columns,
                                value_dim, T(0), Band::kAll, &ahead_, x_.half, nullptr, packed(kValueTurned)});
    const T* z = z_of(shape_, d_state_);
    for (Index d = 0; d < dim; ++d) {
      const T *wide = x_.wide + d * shape_.chunk, *wide_sin = wide + dim * shape_.chunk;
      T* to = x_.d_phi_t + d * shape_.chunk;
      for (Index j = 0; j < columns; j += kLanes<T>) {
        store(to + j, (load(wide + j) + z[d]) * load(angles_.key_cos + j) +
                          (load(wide_sin + j) + z[dim + d]) * load(angles_.key_sin + j));
      }
    }
    if (sweep.inside_chunks && (!packed_ || wants_decay()))
      transpose(x_.phi_k, dim, chunk.keys, dim, x_.phi_kt, shape_.chunk);
    if (wants_decay() && sweep.inside_chunks) {
      for (Index j = 0; j < columns; j += kLanes<T>) {
        Vector<T> total = {};
        for (Index d = 0; d < dim; ++d) {
          total += load(x_.phi_kt + d * shape_.chunk + j) * load(x_.d_phi_t + d * shape_.chunk + j);
        }
        store(x_.row_product + j, total);
      }
      count_decay(chunk, chunk.keys, sweep.scan, -1);
    }
    if (sweep.inside_chunks && chunk.queries > 0) {
      multiply<Layout::kRows, T>({x_.phi_q, dim, x_.phi_kt, shape_.chunk, x_.score, shape_.chunk, chunk.queries,
                                  columns, dim, T(0), left ? Band::kTilesUpToRow : Band::kTilesFromRow, &ahead_,
                                  x_.half, packed(kPhiQuery), packed(kPhiKeyTurned)});
      score_gradients(chunk, sweep.scan);
      if (wants_decay()) count_decay_inside(chunk);
      apply_toeplitz<T>(angles_, chunk.queries, chunk.keys, shape_.chunk, sweep.scan, nullptr, x_.score);
      multiply<Layout::kColumns, T>({x_.score, shape_.chunk, x_.grad, value_dim, x_.d_value, value_dim, chunk.keys,
                                     value_dim, chunk.queries, T(1), left ? Band::kFromRow : Band::kUpToRow, &ahead_,
                                     x_.half, nullptr, packed(kGradPairs)});
      multiply<Layout::kColumns, T>({x_.phi_q, dim, x_.d_score, shape_.chunk, x_.d_phi_t, shape_.chunk, dim, columns,
                                     chunk.queries, T(1), left ? Band::kFromColumn : Band::kUpToColumn, &ahead_,
                                     x_.half, packed(kPhiQueryColumns)});
    }
    transpose(x_.d_phi_t, shape_.chunk, dim, chunk.keys, x_.d_phi, dim);
    if (head_.problem.key_mask != nullptr) {
      for (Index j = 0; j < chunk.keys; ++j) {
        if (!key_present(head_, chunk.begin + j)) fill_zero(x_.d_phi + j * dim, dim);
      }
    }
    finish_rows(chunk, chunk.keys, sweep, x_.phi_k, x_.dk_from_left, head_.problem.k, gradients_.dk,
                head_.sequence.k_begin, [&](Index t) { return key_present(head_, chunk.begin + t); });
    exchange(chunk, chunk.keys, sweep, x_.d_value, x_.dv_from_left, value_dim);
    if (sweep.keep_for_other) return;
    store_rows<T>(head_.problem.dtype, x_.d_value, value_dim, nullptr, chunk.keys, head_.problem.value_dim,
                  row_at(gradients_.dv, head_.problem.dtype, head_.sequence.batch, head_.sequence.k_begin + chunk.begin,
                         head_.head),
                  gradients_.dv.time_stride, head_.streams_results);
  }

  bool wants_decay() const { return gradients_.d_log_decay != nullptr; }

  // Adds ±Σ position·row_product, where φ·dφ of the rows was left.
  void count_decay(const Chunk& chunk, Index rows, Scan scan, double sign) {
    for (Index t = 0; t < rows; ++t) {
      *decay_gradient_ += sign * position_along(chunk, t, scan) * static_cast<double>(x_.row_product[t]);
    }
  }

  // Pairs inside the chunk count with their own distance: Σ |i − j|·φ(q_i)·φ(k_j)·d_score[i][j]. Where the triangle
  // ends d_score is zero and the score may be anything.
  void count_decay_inside(const Chunk& chunk) {
    const Vector<T> zero = {}, lane = load(angles_.lane_numbers);
    for (Index i = 0; i < chunk.queries; ++i) {
      const T *score = x_.score + i * shape_.chunk, *d_score = x_.d_score + i * shape_.chunk;
      Vector<T> total = {};
      for (Index j = 0; j < chunk.keys; j += kLanes<T>) {
        const Vector<T> gradient = load(d_score + j), distance = lane + static_cast<T>(j - i);
        total += gradient == 0 ? zero : load(score + j) * gradient * (distance < 0 ? -distance : distance);
      }
      T lanes[kLanes<T>];
      store(lanes, total);
      for (const T part : lanes) *decay_gradient_ += static_cast<double>(part);
    }
  }

  // Leaves rows for the scan of the other side, or adds what that one left.
  void exchange(const Chunk& chunk, Index rows, const Sweep& sweep, T* mine, T* others, Index width) {
    if (!sweep.keep_for_other && !sweep.add_other) return;
    T* other = others + (chunk.begin - first_token_) * width;
    for (Index i = 0; i < rows * width; i += kLanes<T>) {
      if (sweep.keep_for_other) {
        store(other + i, load(mine + i));
      } else {
        store(mine + i, load(mine + i) + load(other + i));
      }
    }
  }

  // Rows of dφ in scratch.d_phi, with what the scan from the other side gave, through the feature map to the caller.
  // Rows that `present` denies have no gradient, whatever they hold.
  template <class Present>
  void finish_rows(const Chunk& chunk, Index rows, const Sweep& sweep, const T* phi, T* others, const ConstView& input,
                   const View& output, Index begin, Present present) {
    exchange(chunk, rows, sweep, x_.d_phi, others, shape_.dim);
    if (sweep.keep_for_other) return;
    const AttentionProblem& problem = head_.problem;
    const Index batch = head_.sequence.batch, first = begin + chunk.begin;
    if (problem.feature_map == FeatureMap::kSilu) {
      load_rows(problem.dtype, row_at(input, problem.dtype, batch, first, head_.head), input.time_stride, rows,
                problem.dim, shape_.dim, present, x_.raw);
      silu_bwd(x_.raw, x_.d_phi, rows * shape_.dim);
    } else if (problem.feature_map != FeatureMap::kIdentity) {
      for (Index i = 0; i < rows * shape_.dim; i += kLanes<T>) {
        store(x_.d_phi + i, feature_map_bwd<T>(problem.feature_map, load(phi + i), load(x_.d_phi + i)));
      }
    }
    store_rows<T>(problem.dtype, x_.d_phi, shape_.dim, nullptr, rows, problem.dim,
                  row_at(output, problem.dtype, batch, first, head_.head), output.time_stride, head_.streams_results);
  }

  // kv^T [value_dim, 2·dim]
  void advance_state(const Chunk& chunk) {
    const auto decay = static_cast<T>(angles_.decay_power[chunk.length]);
    if (chunk.keys == 0 && decay == 1) return;
    multiply<Layout::kColumns, T>({x_.value, shape_.value_dim, x_.key, 2 * shape_.dim, state_, 2 * shape_.dim,
                                   shape_.value_dim, 2 * shape_.dim, chunk.keys, decay, Band::kAll, &ahead_, x_.half,
                                   packed(kValueColumns), packed(kKeyPairs)});
    add_rows<T>(x_.key, 2 * shape_.dim, nullptr, packed_ && chunk.keys > 0 ? 1 : chunk.keys, 2 * shape_.dim, decay,
                z_of(shape_, state_));
  }

  void advance_d_state(const Chunk& chunk) {
    const auto decay = static_cast<T>(angles_.decay_power[chunk.length]);
    if (chunk.queries == 0 && decay == 1) return;
    multiply<Layout::kColumns, T>({x_.query, 2 * shape_.dim, x_.grad, shape_.value_dim, d_state_, shape_.value_dim,
                                   2 * shape_.dim, shape_.value_dim, chunk.queries, decay, Band::kAll, &ahead_, x_.half,
                                   packed(kQueryColumns), packed(kGradPairs)});
    add_rows<T>(x_.query, 2 * shape_.dim, packed_ ? nullptr : x_.grad_sum,
                packed_ && chunk.queries > 0 ? 1 : chunk.queries, 2 * shape_.dim, decay, z_of(shape_, d_state_));
  }

  const HeadGroup heads_;
  const Segment segment_;
  const Index first_token_;
  T *state_, *d_state_;
  double decay_gradients_[kMostHeadsTogether] = {}, *decay_gradient_;
  Ahead ahead_;
};

}  // namespace
}  // namespace cosformer::kernels::cpu
