// The recurrent form: tokens one after the other on a state of 2·d·(d_v + 1) numbers.
//
// Causal attention is one scan, S_t = γ S_{t−1} + φ̃(k_t) [v_t, 1]ᵀ and o_t = φ̃(q_t) S_t. Attention to all keys is
// that scan plus a second one from the other end which counts the keys after the query only. The backward pass sweeps
// each scan twice: along it for dq, against it for dk and dv.
#include "kernels/reference/head_arrays.h"
#include "kernels/reference/reference.h"

namespace cosformer::kernels::reference {
namespace {

template <class Real, bool kMagnitudes>
class RecurrentHead {
 public:
  RecurrentHead(const AttentionProblem& p, std::int64_t sequence, std::int64_t head, void* scratch)
      : p_(p), s_(p.sequences[sequence]), sequence_(sequence), head_(head), arena_(scratch) {
    columns_ = p.value_dim + 1;  // the values and one more column of ones, whose sum is the denominator
    steps_ = std::max(s_.q_length, s_.k_length);
    decay_ = decay_power<Real>(p, head, 1);
    state_ = arena_.take<Real>(2 * p.dim * columns_);
    feature_ = arena_.take<Real>(2 * p.dim);
    raw_ = arena_.take<Real>(p.dim);
    row_ = arena_.take<Real>(columns_);
    sums_ = arena_.take<Real>(s_.q_length * columns_);
  }

  std::size_t forward_scratch() const { return arena_.used(); }

  std::size_t backward_scratch() {
    take_gradients();
    return arena_.used();
  }

  void forward() {
    std::fill_n(sums_, s_.q_length * columns_, Real(0));
    scan_outputs(/*reversed=*/false);
    if (p_.state_kv_out != nullptr) store_state(p_, p_.state_kv_out, p_.state_z_out, sequence_, head_, state_);
    if (!p_.causal) scan_outputs(/*reversed=*/true);
    for (std::int64_t i = 0; i < s_.q_length; ++i) {
      const Real* sum = sums_ + i * columns_;
      const bool given = kMagnitudes && p_.denominator.data != nullptr;
      const Real denominator = given ? load_denominator<Real>(p_, s_, head_, i) : sum[p_.value_dim];
      if (p_.denominator.data != nullptr && !given) store_denominator(p_, s_, head_, i, denominator);
      const Real divisor =
          p_.normalizer == Normalizer::kSum ? std::max(denominator, static_cast<Real>(p_.eps)) : Real(1);
      const std::int64_t at = element_offset(p_.out, s_.batch, s_.q_begin + i, head_);
      for (std::int64_t c = 0; c < p_.value_dim; ++c) {
        store_element(p_.dtype, p_.out.data, at + c, sum[c] / divisor);
      }
    }
  }

  void backward(const AttentionGradients& grads) {
    take_gradients();
    load_row_gradients(grads);
    std::fill_n(dq_, s_.q_length * p_.dim, Real(0));
    std::fill_n(dk_, s_.k_length * p_.dim, Real(0));
    std::fill_n(dv_, s_.k_length * p_.value_dim, Real(0));
    for (const bool reversed : {false, true}) {
      if (reversed && p_.causal) break;
      scan_query_gradients(reversed, grads);
      scan_key_gradients(reversed, grads);
    }
    finish(grads.dq, p_.q, dq_, s_.q_begin, s_.q_length, /*keys=*/false);
    finish(grads.dk, p_.k, dk_, s_.k_begin, s_.k_length, /*keys=*/true);
    store_rows(p_.dtype, grads.dv, s_.batch, head_, s_.k_begin, s_.k_length, p_.value_dim, dv_);
    if (grads.d_log_decay != nullptr) grads.d_log_decay[sequence_ * p_.heads + head_] = static_cast<double>(dln_);
  }

 private:
  void take_gradients() {
    dq_ = arena_.take<Real>(s_.q_length * p_.dim);
    dk_ = arena_.take<Real>(s_.k_length * p_.dim);
    dv_ = arena_.take<Real>(s_.k_length * p_.value_dim);
    other_state_ = arena_.take<Real>(2 * p_.dim * columns_);
  }

  static Real magnitude(Real x) { return kMagnitudes ? std::abs(x) : x; }
  Angle<Real> angle_of(std::int64_t t) const {
    const Angle<Real> angle = angle_at<Real>(theta_of(p_, s_, head_), s_.position + t, s_.period);
    return {magnitude(angle.cosine), magnitude(angle.sine)};
  }
  std::int64_t step_to_token(std::int64_t step, bool reversed) const { return reversed ? steps_ - 1 - step : step; }

  // φ̃(x_t) into feature_; false where there is no such token or its key is absent.
  bool load_query(std::int64_t t) { return t < s_.q_length && load_features(p_.q, s_.q_begin, t); }
  bool load_key(std::int64_t t) {
    return t < s_.k_length && key_is_present(p_, s_, t) && load_features(p_.k, s_.k_begin, t);
  }

  bool load_features(const ConstView& x, std::int64_t begin, std::int64_t t) {
    load_rows(p_.dtype, x, s_.batch, head_, begin + t, 1, p_.dim, raw_);
    const Angle<Real> angle = angle_of(t);
    for (std::int64_t c = 0; c < p_.dim; ++c) {
      const Real phi = magnitude(apply_feature_map(p_.feature_map, raw_[c]));
      feature_[c] = phi * angle.cosine;
      feature_[p_.dim + c] = phi * angle.sine;
    }
    return true;
  }

  // The gradient of φ(x_t) from that of φ̃(x_t), added to `into`; φ·dφ goes to the decay's gradient, weighted.
  void add_feature_gradient(std::int64_t t, const Real* doubled, Real* into, Real weight) {
    const Angle<Real> angle = angle_of(t);
    for (std::int64_t c = 0; c < p_.dim; ++c) {
      const Real d = doubled[c] * angle.cosine + doubled[p_.dim + c] * angle.sine;
      into[c] += d;
      dln_ += weight * apply_feature_map(p_.feature_map, raw_[c]) * d;
    }
  }

  void scale_state() {
    for (std::int64_t c = 0; c < 2 * p_.dim * columns_; ++c) state_[c] *= decay_;
  }

  void start_state(bool reversed) {
    std::fill_n(state_, 2 * p_.dim * columns_, Real(0));
    if (reversed || !has_incoming_state(p_)) return;
    load_state(p_, p_.state_kv_in, p_.state_z_in, sequence_, head_, state_);
  }

  Real inner_with_state(const void* kv, const void* z) {
    load_state(p_, kv, z, sequence_, head_, other_state_);
    Real sum = 0;
    for (std::int64_t at = 0; at < 2 * p_.dim * columns_; ++at) sum += state_[at] * other_state_[at];
    return sum;
  }

  // state += feature ⊗ row
  void accumulate(const Real* row) {
    for (std::int64_t c = 0; c < 2 * p_.dim; ++c) {
      for (std::int64_t e = 0; e < columns_; ++e) state_[c * columns_ + e] += feature_[c] * row[e];
    }
  }

  void add_key(std::int64_t t) {
    if (!load_key(t)) return;
    load_rows(p_.dtype, p_.v, s_.batch, head_, s_.k_begin + t, 1, p_.value_dim, row_);
    row_[p_.value_dim] = 1;
    accumulate(row_);
  }

  // Walks along a scan: `use(t)` sees the state that token t attends to, itself included forwards, excluded backwards.
  template <class Use>
  void scan_keys(bool reversed, Use use) {
    start_state(reversed);
    for (std::int64_t step = 0; step < steps_; ++step) {
      const std::int64_t t = step_to_token(step, reversed);
      scale_state();
      if (!reversed) add_key(t);
      use(t);
      if (reversed) add_key(t);
    }
  }

  void scan_outputs(bool reversed) {
    scan_keys(reversed, [&](std::int64_t t) {
      if (!load_query(t)) return;
      for (std::int64_t c = 0; c < 2 * p_.dim; ++c) {
        for (std::int64_t e = 0; e < columns_; ++e) {
          sums_[t * columns_ + e] += feature_[c] * state_[c * columns_ + e];
        }
      }
    });
  }

  // sums_ holds [g_i, e_i]: the gradients of a row's weighted sum and of its denominator.
  void load_row_gradients(const AttentionGradients& grads) {
    for (std::int64_t i = 0; i < s_.q_length; ++i) {
      Real* g = sums_ + i * columns_;
      load_rows(p_.dtype, grads.dout, s_.batch, head_, s_.q_begin + i, 1, p_.value_dim, g);
      g[p_.value_dim] = 0;
      if (p_.normalizer != Normalizer::kSum) continue;
      const Real sum = load_denominator<Real>(p_, s_, head_, i);
      const bool clamped = sum < static_cast<Real>(p_.eps);
      const Real divisor = clamped ? static_cast<Real>(p_.eps) : sum;
      load_rows(p_.dtype, p_.out, s_.batch, head_, s_.q_begin + i, 1, p_.value_dim, row_);
      Real inner = 0;
      for (std::int64_t c = 0; c < p_.value_dim; ++c) inner += g[c] * row_[c];
      for (std::int64_t c = 0; c < p_.value_dim; ++c) g[c] /= divisor;
      if (!clamped) g[p_.value_dim] = (kMagnitudes ? inner : -inner) / divisor;
    }
  }

  void scan_query_gradients(bool reversed, const AttentionGradients& grads) {
    scan_keys(reversed, [&](std::int64_t t) {
      if (!load_query(t)) return;
      Real* doubled = feature_;
      for (std::int64_t c = 0; c < 2 * p_.dim; ++c) {
        Real d = 0;
        for (std::int64_t e = 0; e < columns_; ++e) d += state_[c * columns_ + e] * sums_[t * columns_ + e];
        doubled[c] = d;
      }
      add_feature_gradient(t, doubled, dq_ + t * p_.dim, static_cast<Real>(reversed ? -t : t));
    });
    // To the decay, the outgoing state is one more query at the last token, and the incoming one a key before the
    // first.
    if (reversed || grads.d_state_kv_out == nullptr) return;
    dln_ += static_cast<Real>(steps_ - 1) * inner_with_state(grads.d_state_kv_out, grads.d_state_z_out);
  }

  // Against the scan: the state now gathers φ̃(q_i) [g_i, e_i] of the queries that see key t.
  void scan_key_gradients(bool reversed, const AttentionGradients& grads) {
    std::fill_n(state_, 2 * p_.dim * columns_, Real(0));
    if (!reversed && grads.d_state_kv_out != nullptr) {
      load_state(p_, grads.d_state_kv_out, grads.d_state_z_out, sequence_, head_, state_);
    }
    for (std::int64_t step = steps_ - 1; step >= 0; --step) {
      const std::int64_t t = step_to_token(step, reversed);
      if (step < steps_ - 1) scale_state();
      if (!reversed && load_query(t)) accumulate(sums_ + t * columns_);
      if (load_key(t)) add_key_gradient(t, reversed);
      if (reversed && load_query(t)) accumulate(sums_ + t * columns_);
    }
    if (reversed || !has_incoming_state(p_)) return;
    const Real carried = steps_ > 0 ? decay_ : Real(1);
    dln_ += carried * inner_with_state(p_.state_kv_in, p_.state_z_in);
    if (grads.d_state_kv_in == nullptr) return;
    if (steps_ > 0) scale_state();
    store_state(p_, grads.d_state_kv_in, grads.d_state_z_in, sequence_, head_, state_);
  }

  void add_key_gradient(std::int64_t t, bool reversed) {
    load_rows(p_.dtype, p_.v, s_.batch, head_, s_.k_begin + t, 1, p_.value_dim, row_);
    row_[p_.value_dim] = 1;
    Real* dv = dv_ + t * p_.value_dim;
    for (std::int64_t c = 0; c < 2 * p_.dim; ++c) {
      for (std::int64_t e = 0; e < p_.value_dim; ++e) dv[e] += feature_[c] * state_[c * columns_ + e];
    }
    Real* doubled = feature_;
    for (std::int64_t c = 0; c < 2 * p_.dim; ++c) {
      Real d = 0;
      for (std::int64_t e = 0; e < columns_; ++e) d += state_[c * columns_ + e] * row_[e];
      doubled[c] = d;
    }
    add_feature_gradient(t, doubled, dk_ + t * p_.dim, static_cast<Real>(reversed ? t : -t));
  }

  void finish(const View& into, const ConstView& x, const Real* gradient, std::int64_t begin, std::int64_t length,
              bool keys) {
    for (std::int64_t t = 0; t < length; ++t) {
      load_rows(p_.dtype, x, s_.batch, head_, begin + t, 1, p_.dim, raw_);
      const bool present = !keys || key_is_present(p_, s_, t);
      const std::int64_t at = element_offset(into, s_.batch, begin + t, head_);
      for (std::int64_t c = 0; c < p_.dim; ++c) {
        const Real slope = magnitude(feature_map_derivative(p_.feature_map, raw_[c]));
        store_element(p_.dtype, into.data, at + c, present ? gradient[t * p_.dim + c] * slope : Real(0));
      }
    }
  }

  const AttentionProblem& p_;
  const Sequence& s_;
  std::int64_t sequence_, head_;
  Arena arena_;
  std::int64_t columns_, steps_;
  Real decay_;
  Real *state_, *feature_, *raw_, *row_, *sums_;
  Real *dq_ = nullptr, *dk_ = nullptr, *dv_ = nullptr, *other_state_ = nullptr;
  Real dln_ = 0;
};

// The definition is computed one size wider than its inputs, the naive twin in the accumulation type.
struct OneSizeWider {
  using OfFloat64 = RecurrentHead<long double, false>;
  using OfOthers = RecurrentHead<double, false>;
};
struct InAccumulationType {
  using OfFloat64 = RecurrentHead<double, false>;
  using OfOthers = RecurrentHead<float, false>;
};
struct Magnitudes {
  using OfFloat64 = RecurrentHead<double, true>;
  using OfOthers = RecurrentHead<double, true>;
};

template <class Head>
std::size_t scratch_of(const AttentionProblem& p, bool backward) {
  std::size_t most = 0;
  for (std::int64_t s = 0; s < p.sequence_count; ++s) {
    Head head(p, s, 0, nullptr);
    most = std::max(most, backward ? head.backward_scratch() : head.forward_scratch());
  }
  return most;
}

template <class Precision>
Schedule plan(const AttentionProblem& p, bool backward) {
  const std::size_t scratch = p.dtype == DType::kFloat64 ? scratch_of<typename Precision::OfFloat64>(p, backward)
                                                         : scratch_of<typename Precision::OfOthers>(p, backward);
  return {.phases = 1, .items = {p.sequence_count * p.heads}, .scratch_bytes = scratch};
}

template <class Precision>
Schedule plan_fwd(const AttentionProblem& p, int) {
  return plan<Precision>(p, false);
}

template <class Precision>
Schedule plan_bwd(const AttentionProblem& p, const AttentionGradients&, int) {
  return plan<Precision>(p, true);
}

template <class Precision>
void run_fwd(const AttentionProblem& p, const Schedule&, const Work& work) {
  for (std::int64_t item = work.begin; item < work.end; ++item) {
    const std::int64_t sequence = item / p.heads, head = item % p.heads;
    if (p.dtype == DType::kFloat64) {
      typename Precision::OfFloat64(p, sequence, head, work.scratch).forward();
    } else {
      typename Precision::OfOthers(p, sequence, head, work.scratch).forward();
    }
  }
}

template <class Precision>
void run_bwd(const AttentionProblem& p, const AttentionGradients& grads, const Schedule&, const Work& work) {
  for (std::int64_t item = work.begin; item < work.end; ++item) {
    const std::int64_t sequence = item / p.heads, head = item % p.heads;
    if (p.dtype == DType::kFloat64) {
      typename Precision::OfFloat64(p, sequence, head, work.scratch).backward(grads);
    } else {
      typename Precision::OfOthers(p, sequence, head, work.scratch).backward(grads);
    }
  }
}

template <class Precision>
constexpr AttentionKernels make_kernels(const char* name) {
  return {name, plan_fwd<Precision>, run_fwd<Precision>, plan_bwd<Precision>, run_bwd<Precision>};
}

}  // namespace

const AttentionKernels& recurrent_kernels() {
  static constexpr AttentionKernels kKernels = make_kernels<OneSizeWider>("recurrent");
  return kKernels;
}

const AttentionKernels& recurrent_magnitude_kernels() {
  static constexpr AttentionKernels kKernels = make_kernels<Magnitudes>("recurrent magnitudes");
  return kKernels;
}

const AttentionKernels& naive_recurrent_kernels() {
  static constexpr AttentionKernels kKernels = make_kernels<InAccumulationType>("naive recurrent");
  return kKernels;
}

}  // namespace cosformer::kernels::reference
