// The backward pass over one segment of one head, from q, k, v, out and the row sums alone.
//
// Values count as having one more column of ones, whose output gradient is e (docs/method.md): then dφ(q) comes from
// the state of keys and values along a scan, and dφ(k) and dv from the state of queries and gradients against it.
#pragma once

#include "kernels/cpu/body/state.h"

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
class BackwardSegment {
 public:
  BackwardSegment(const HeadContext& head, const AttentionGradients& gradients, const BackwardScratch<T>& scratch,
                  Segment segment)
      : head_(head),
        gradients_(gradients),
        x_(scratch),
        shape_(head.shape),
        segment_(segment),
        first_token_(segment.begin < segment.end ? chunk_at(head.grid, segment.begin).begin : 0),
        d_state_out_(external_state<T>(head, gradients.d_state_kv_out, gradients.d_state_z_out)) {}

  // What the keys and values of this segment add to the state, left in scratch.state.
  void sum_keys(Scan scan) {
    fill_zero(x_.state, shape_.state);
    for (Index step = 0; step < chunks(); ++step) {
      const Chunk chunk = chunk_along(step, scan);
      prepare_chunk(head_, x_.angles, chunk, scan);
      load_chunk_keys(chunk);
      advance_state(chunk);
    }
  }

  // What the queries and gradients of this segment add to the gradient of the state, left in scratch.d_state.
  void sum_queries(Scan scan) {
    fill_zero(x_.d_state, shape_.state);
    for (Index step = 0; step < chunks(); ++step) {
      const Chunk chunk = chunk_against(step, scan);
      prepare_chunk(head_, x_.angles, chunk, scan);
      receive_outgoing(chunk, scan);
      load_chunk_queries(chunk);
      load_gradients(chunk);
      advance_d_state(chunk);
    }
  }

  // dq, along the scan, with the state in scratch.state.
  void sweep_queries(const Sweep& sweep) {
    if (sweep.inside_chunks) prepare_toeplitz(head_, x_.angles, sweep.scan);
    for (Index step = 0; step < chunks(); ++step) {
      const Chunk chunk = chunk_along(step, sweep.scan);
      prepare_chunk(head_, x_.angles, chunk, sweep.scan);
      if (sweep.inside_chunks) load_chunk_keys(chunk);
      if (chunk.queries > 0) query_gradients(chunk, sweep);
      if (!sweep.inside_chunks) continue;
      advance_state(chunk);
      if (sweep.scan == Scan::kFromLeft && ends_keys(chunk)) meet_outgoing(chunk);
    }
  }

  // dk and dv, against the scan, with the gradient of the state in scratch.d_state.
  void sweep_keys(const Sweep& sweep) {
    if (sweep.inside_chunks) prepare_toeplitz(head_, x_.angles, sweep.scan);
    for (Index step = 0; step < chunks(); ++step) {
      const Chunk chunk = chunk_against(step, sweep.scan);
      prepare_chunk(head_, x_.angles, chunk, sweep.scan);
      if (sweep.inside_chunks) {
        receive_outgoing(chunk, sweep.scan);
        load_chunk_queries(chunk);
        load_gradients(chunk);
      }
      if (chunk.keys > 0) key_gradients(chunk, sweep);
      if (sweep.inside_chunks) advance_d_state(chunk);
    }
  }

  // Σ_i i·φ(q_i)·dφ(q_i) − Σ_j j·φ(k_j)·dφ(k_j) of the sweeps so far, positions counted along each scan from this
  // segment's first token, and what leaves through the outgoing state.
  double decay_gradient() const { return decay_gradient_; }

 private:
  bool normalized() const { return head_.problem.normalizer == Normalizer::kSum; }
  Index chunks() const { return segment_.end - segment_.begin; }
  Chunk chunk_along(Index step, Scan scan) const {
    return chunk_at(head_.grid, scan == Scan::kFromLeft ? segment_.begin + step : segment_.end - 1 - step);
  }
  Chunk chunk_against(Index step, Scan scan) const { return chunk_along(chunks() - 1 - step, scan); }
  bool ends_keys(const Chunk& chunk) const {
    return chunk.keys > 0 && chunk.begin + chunk.keys == head_.grid.key_length;
  }
  double position_along(const Chunk& chunk, Index t, Scan scan) const {
    const Index local = chunk.begin + t - first_token_;
    return static_cast<double>(scan == Scan::kFromLeft ? local : segment_.tokens - 1 - local);
  }

  // The outgoing state is the one after the last key.
  void receive_outgoing(const Chunk& chunk, Scan scan) {
    if (scan == Scan::kFromLeft && ends_keys(chunk)) {
      add_external(head_, d_state_out_, StateLayout::kFeatureRows, x_.d_state);
    }
  }
  void meet_outgoing(const Chunk& chunk) {
    if (gradients_.d_log_decay == nullptr || d_state_out_.kv == nullptr) return;
    import_state(head_, d_state_out_, StateLayout::kFeatureRows, x_.d_state);
    decay_gradient_ += position_along(chunk, chunk.length - 1, Scan::kFromLeft) *
                       inner_product(shape_, x_.state, StateLayout::kValueRows, x_.d_state, StateLayout::kFeatureRows);
  }

  void load_chunk_keys(const Chunk& chunk) {
    if (chunk.keys == 0) return;
    load_keys(head_, chunk, x_.phi_k);
    load_values(head_, chunk, x_.value);
    rotate_features(x_.phi_k, x_.angles.key_cos, x_.angles.key_sin, chunk.keys, shape_.dim, x_.key);
  }

  void load_chunk_queries(const Chunk& chunk) {
    load_queries(head_, chunk, x_.phi_q);
    rotate_features(x_.phi_q, x_.angles.query_cos, x_.angles.query_sin, chunk.queries, shape_.dim, x_.query);
  }

  // g = dout/s and e = −(dout·out)/s; where s was clamped, g = dout/eps and e = 0.
  void load_gradients(const Chunk& chunk) {
    const AttentionProblem& problem = head_.problem;
    const auto eps = static_cast<T>(problem.eps);
    for (Index i = 0; i < chunk.queries; ++i) {
      const Index time = head_.sequence.q_begin + chunk.begin + i;
      T* row = x_.grad + i * shape_.value_dim;
      load_row(problem.dtype, row_at(gradients_.dout, problem.dtype, head_.sequence.batch, time, head_.head),
               problem.value_dim, shape_.value_dim, row);
      x_.grad_sum[i] = 0;
      if (!normalized()) continue;
      const View& view = problem.denominator;
      const T row_sum = static_cast<const T*>(view.data)[head_.sequence.batch * view.batch_stride +
                                                         time * view.time_stride + head_.head * view.head_stride];
      const bool clamped = row_sum < eps;
      const T divisor = clamped ? eps : row_sum;
      const T scale = divisor == 0 ? T(0) : 1 / divisor;
      if (!clamped) {
        load_row(problem.dtype, row_at(problem.out, problem.dtype, head_.sequence.batch, time, head_.head),
                 problem.value_dim, shape_.value_dim, x_.raw);
        x_.grad_sum[i] = -dot(row, x_.raw, shape_.value_dim) * scale;
      }
      for (Index e = 0; e < shape_.value_dim; ++e) row[e] *= scale;
    }
  }

  // d_score[i][j] = (g_i·v_j + e_i)·weight of the pair
  void score_gradients(const Chunk& chunk, Scan scan) {
    multiply<Layout::kRows, T>({x_.grad, shape_.value_dim, x_.value_t, shape_.chunk, x_.d_score, shape_.chunk,
                                chunk.queries, round_up(chunk.keys, kLanes<T>), shape_.value_dim, T(0),
                                scan == Scan::kFromLeft ? Band::kTilesUpToRow : Band::kTilesFromRow});
    apply_toeplitz<T>(x_.angles, chunk.queries, chunk.keys, shape_.chunk, scan, x_.grad_sum, x_.d_score);
  }

  void query_gradients(const Chunk& chunk, const Sweep& sweep) {
    const Index dim = shape_.dim, first_row = chunk.begin - first_token_;
    load_queries(head_, chunk, x_.phi_q);
    load_gradients(chunk);
    multiply<Layout::kRows, T>({x_.grad, shape_.value_dim, x_.state, 2 * dim, x_.wide, 2 * dim, chunk.queries, 2 * dim,
                                shape_.value_dim, T(0), Band::kAll});
    const T* z = z_of(shape_, x_.state);
    for (Index i = 0; i < chunk.queries; ++i) {
      const T *wide = x_.wide + i * 2 * dim, cosine = x_.angles.query_cos[i], sine = x_.angles.query_sin[i];
      const T e = x_.grad_sum[i];
      T* to = x_.d_phi + i * dim;
      for (Index d = 0; d < dim; d += kLanes<T>) {
        store(to + d,
              (load(wide + d) + load(z + d) * e) * cosine + (load(wide + dim + d) + load(z + dim + d) * e) * sine);
      }
    }
    if (sweep.inside_chunks && chunk.keys > 0) {
      transpose(x_.value, shape_.value_dim, chunk.keys, shape_.value_dim, x_.value_t, shape_.chunk);
      score_gradients(chunk, sweep.scan);
      multiply<Layout::kRows, T>({x_.d_score, shape_.chunk, x_.phi_k, dim, x_.d_phi, dim, chunk.queries, dim,
                                  chunk.keys, T(1), sweep.scan == Scan::kFromLeft ? Band::kUpToRow : Band::kFromRow});
    }
    for (Index i = 0; i < chunk.queries; ++i) {
      T* d_phi = x_.d_phi + i * dim;
      count_decay(x_.phi_q + i * dim, d_phi, position_along(chunk, i, sweep.scan));
      const View& view = gradients_.dq;
      const Index time = head_.sequence.q_begin + chunk.begin + i;
      finish_row(sweep, d_phi, x_.dq_from_right + (first_row + i) * dim, head_.problem.q, view, time);
    }
  }

  void key_gradients(const Chunk& chunk, const Sweep& sweep) {
    const Index dim = shape_.dim, value_dim = shape_.value_dim, first_row = chunk.begin - first_token_;
    const Index columns = round_up(chunk.keys, kLanes<T>);
    const bool left = sweep.scan == Scan::kFromLeft;
    load_chunk_keys(chunk);
    transpose(x_.value, value_dim, chunk.keys, value_dim, x_.value_t, shape_.chunk);
    multiply<Layout::kRows, T>({x_.key, 2 * dim, x_.d_state, value_dim, x_.d_value, value_dim, chunk.keys, value_dim,
                                2 * dim, T(0), Band::kAll});
    multiply<Layout::kRows, T>({x_.d_state, value_dim, x_.value_t, shape_.chunk, x_.wide, shape_.chunk, 2 * dim,
                                columns, value_dim, T(0), Band::kAll});
    const T* z = z_of(shape_, x_.d_state);
    for (Index d = 0; d < dim; ++d) {
      const T *wide = x_.wide + d * shape_.chunk, *wide_sin = wide + dim * shape_.chunk;
      T* to = x_.d_phi_t + d * shape_.chunk;
      for (Index j = 0; j < columns; j += kLanes<T>) {
        store(to + j, (load(wide + j) + z[d]) * load(x_.angles.key_cos + j) +
                          (load(wide_sin + j) + z[dim + d]) * load(x_.angles.key_sin + j));
      }
    }
    if (sweep.inside_chunks && chunk.queries > 0) {
      transpose(x_.phi_k, dim, chunk.keys, dim, x_.phi_kt, shape_.chunk);
      multiply<Layout::kRows, T>({x_.phi_q, dim, x_.phi_kt, shape_.chunk, x_.score, shape_.chunk, chunk.queries,
                                  columns, dim, T(0), left ? Band::kTilesUpToRow : Band::kTilesFromRow});
      apply_toeplitz<T>(x_.angles, chunk.queries, chunk.keys, shape_.chunk, sweep.scan, nullptr, x_.score);
      multiply<Layout::kColumns, T>({x_.score, shape_.chunk, x_.grad, value_dim, x_.d_value, value_dim, chunk.keys,
                                     value_dim, chunk.queries, T(1), left ? Band::kFromRow : Band::kUpToRow});
      score_gradients(chunk, sweep.scan);
      multiply<Layout::kColumns, T>({x_.phi_q, dim, x_.d_score, shape_.chunk, x_.d_phi_t, shape_.chunk, dim, columns,
                                     chunk.queries, T(1), left ? Band::kFromColumn : Band::kUpToColumn});
    }
    transpose(x_.d_phi_t, shape_.chunk, dim, chunk.keys, x_.d_phi, dim);
    for (Index j = 0; j < chunk.keys; ++j) {
      const Index time = head_.sequence.k_begin + chunk.begin + j, kept = first_row + j;
      T* d_phi = x_.d_phi + j * dim;
      count_decay(x_.phi_k + j * dim, d_phi, -position_along(chunk, j, sweep.scan));
      if (!key_present(head_, chunk.begin + j)) fill_zero(d_phi, dim);
      finish_row(sweep, d_phi, x_.dk_from_left + kept * dim, head_.problem.k, gradients_.dk, time);
      T* d_value = x_.d_value + j * value_dim;
      exchange(sweep, d_value, x_.dv_from_left + kept * value_dim, value_dim);
      if (sweep.keep_for_other) continue;
      store_row(head_.problem.dtype, d_value, T(1), head_.problem.value_dim,
                row_at(gradients_.dv, head_.problem.dtype, head_.sequence.batch, time, head_.head));
    }
  }

  void count_decay(const T* phi, const T* d_phi, double position) {
    if (gradients_.d_log_decay == nullptr) return;
    decay_gradient_ += position * static_cast<double>(dot(phi, d_phi, shape_.dim));
  }

  static void exchange(const Sweep& sweep, T* row, T* other, Index n) {
    if (sweep.keep_for_other) {
      for (Index i = 0; i < n; ++i) other[i] = row[i];
    } else if (sweep.add_other) {
      for (Index i = 0; i < n; ++i) row[i] += other[i];
    }
  }

  // A row of dφ, with what the scan from the other side gave, through the feature map to the caller.
  void finish_row(const Sweep& sweep, T* d_phi, T* other, const ConstView& input, const View& output, Index time) {
    exchange(sweep, d_phi, other, shape_.dim);
    if (sweep.keep_for_other) return;
    const DType dtype = head_.problem.dtype;
    load_row(dtype, row_at(input, dtype, head_.sequence.batch, time, head_.head), head_.problem.dim, shape_.dim,
             x_.raw);
    apply_feature_map_bwd(head_.problem.feature_map, x_.raw, d_phi, head_.problem.dim);
    store_row(dtype, d_phi, T(1), head_.problem.dim, row_at(output, dtype, head_.sequence.batch, time, head_.head));
  }

  // kv^T [value_dim, 2·dim]
  void advance_state(const Chunk& chunk) {
    const auto decay = static_cast<T>(x_.angles.decay_power[chunk.length]);
    if (chunk.keys == 0 && decay == 1) return;
    multiply<Layout::kColumns, T>({x_.value, shape_.value_dim, x_.key, 2 * shape_.dim, x_.state, 2 * shape_.dim,
                                   shape_.value_dim, 2 * shape_.dim, chunk.keys, decay, Band::kAll});
    add_rows<T>(x_.key, 2 * shape_.dim, nullptr, chunk.keys, 2 * shape_.dim, decay, z_of(shape_, x_.state));
  }

  void advance_d_state(const Chunk& chunk) {
    const auto decay = static_cast<T>(x_.angles.decay_power[chunk.length]);
    if (chunk.queries == 0 && decay == 1) return;
    multiply<Layout::kColumns, T>({x_.query, 2 * shape_.dim, x_.grad, shape_.value_dim, x_.d_state, shape_.value_dim,
                                   2 * shape_.dim, shape_.value_dim, chunk.queries, decay, Band::kAll});
    add_rows<T>(x_.query, 2 * shape_.dim, x_.grad_sum, chunk.queries, 2 * shape_.dim, decay, z_of(shape_, x_.d_state));
  }

  const HeadContext& head_;
  const AttentionGradients& gradients_;
  const BackwardScratch<T> x_;
  const PaddedShape shape_;
  const Segment segment_;
  const Index first_token_;
  const ExternalState<T> d_state_out_;
  double decay_gradient_ = 0;
};

}  // namespace
}  // namespace cosformer::kernels::cpu
