// The quadratic form, three times: by the definition, as the naive twin that rounds every intermediate it stores, and
// on absolute values, which tells how large the terms were that a result was summed from.
#include "kernels/reference/head_arrays.h"
#include "kernels/reference/reference.h"

namespace cosformer::kernels::reference {
namespace {

// The definition multiplies d features by the table cos(θΔ)·γ^Δ and keeps full precision in between.
struct ByDefinition {
  static constexpr bool kDoubledFeatures = false;
  static constexpr bool kMagnitudes = false;
  template <class Real>
  static Real round(DType, Real x) {
    return x;
  }
};

struct ByDefinitionInDouble : ByDefinition {};

// The naive twin multiplies 2d features [φ cos θi, φ sin θi] by γ^Δ and rounds what it would have stored.
struct NaiveInDtype {
  static constexpr bool kDoubledFeatures = true;
  static constexpr bool kMagnitudes = false;
  template <class Real>
  static Real round(DType dtype, Real x) {
    switch (dtype) {
      case DType::kFloat64: return x;
      case DType::kFloat32: return static_cast<Real>(static_cast<float>(x));
      case DType::kBFloat16: return static_cast<Real>(to_float(to_bfloat16(static_cast<float>(x))));
      case DType::kFloat16: return static_cast<Real>(to_float(to_float16(static_cast<float>(x))));
    }
    return x;
  }
};

// The sums of the linear form with every term made positive, over the true denominators, which it reads and does not
// write. Values, states and output gradients are expected positive already.
struct OnMagnitudes : ByDefinition {
  static constexpr bool kDoubledFeatures = true;
  static constexpr bool kMagnitudes = true;
};

template <class Real>
Real dot(const Real* a, const Real* b, std::int64_t n) {
  Real sum = 0;
  for (std::int64_t c = 0; c < n; ++c) sum += a[c] * b[c];
  return sum;
}

// One head of one sequence. F features per token: d by the definition, 2d for the naive twin.
template <class Real, class Form>
class QuadraticHead {
 public:
  QuadraticHead(const AttentionProblem& p, std::int64_t sequence, std::int64_t head, void* scratch)
      : p_(p), s_(p.sequences[sequence]), sequence_(sequence), head_(head), arena_(scratch) {
    tq_ = s_.q_length;
    tk_ = s_.k_length;
    features_ = Form::kDoubledFeatures ? 2 * p.dim : p.dim;
    q_ = arena_.take<Real>(tq_ * p.dim);
    k_ = arena_.take<Real>(tk_ * p.dim);
    v_ = arena_.take<Real>(tk_ * p.value_dim);
    qf_ = arena_.take<Real>(tq_ * 2 * p.dim);
    kf_ = arena_.take<Real>(tk_ * 2 * p.dim);
    table_ = arena_.take<Real>(std::max(tq_, tk_) + 1);
    out_ = arena_.take<Real>(tq_ * p.value_dim);
    den_ = arena_.take<Real>(tq_);
    columns_ = p.value_dim + 1;
    if (has_incoming_state(p)) state_ = arena_.take<Real>(2 * p.dim * columns_);
    if (p.state_kv_out != nullptr) state_out_ = arena_.take<Real>(2 * p.dim * columns_);
  }

  std::size_t forward_scratch() const { return arena_.used(); }

  std::size_t backward_scratch() {
    take_gradients();
    return arena_.used();
  }

  void forward() {
    load();
    for (std::int64_t i = 0; i < tq_; ++i) forward_row(i);
    store_rows(p_.dtype, p_.out, s_.batch, head_, s_.q_begin, tq_, p_.value_dim, out_);
    if (p_.denominator.data != nullptr && !Form::kMagnitudes) {
      for (std::int64_t i = 0; i < tq_; ++i) store_denominator(p_, s_, head_, i, den_[i]);
    }
    if (p_.state_kv_out != nullptr) write_state();
  }

  void backward(const AttentionGradients& grads) {
    take_gradients();
    load();
    load_rows(p_.dtype, p_.out, s_.batch, head_, s_.q_begin, tq_, p_.value_dim, out_);
    load_rows(p_.dtype, grads.dout, s_.batch, head_, s_.q_begin, tq_, p_.value_dim, dout_);
    for (std::int64_t i = 0; i < tq_; ++i) gradient_of_row_sums(i);
    std::fill_n(dqf_, tq_ * 2 * p_.dim, Real(0));
    std::fill_n(dkf_, tk_ * 2 * p_.dim, Real(0));
    std::fill_n(dv_, tk_ * p_.value_dim, Real(0));
    for (std::int64_t i = 0; i < tq_; ++i) backward_row(i);
    if (state_ != nullptr) backward_of_incoming_state();
    if (grads.d_state_kv_out != nullptr) {
      load_state(p_, grads.d_state_kv_out, grads.d_state_z_out, sequence_, head_, d_state_out_);
      backward_of_outgoing_state();
    }
    if (grads.d_state_kv_in != nullptr) {
      store_state(p_, grads.d_state_kv_in, grads.d_state_z_in, sequence_, head_, d_state_in_);
    }
    finish_inputs(dqf_, q_, tq_, nullptr, grads.dq, s_.q_begin);
    finish_inputs(dkf_, k_, tk_, kf_, grads.dk, s_.k_begin);
    store_rows(p_.dtype, grads.dv, s_.batch, head_, s_.k_begin, tk_, p_.value_dim, dv_);
    if (grads.d_log_decay != nullptr) grads.d_log_decay[sequence_ * p_.heads + head_] = static_cast<double>(dln_);
  }

 private:
  Real round(Real x) const { return Form::round(p_.dtype, x); }
  static Real magnitude(Real x) { return Form::kMagnitudes ? std::abs(x) : x; }
  Angle<Real> angle_of(std::int64_t t) const {
    const Angle<Real> angle = angle_at<Real>(theta_of(p_, s_, head_), s_.position + t, s_.period);
    return Form::kMagnitudes ? Angle<Real>{std::abs(angle.cosine), std::abs(angle.sine)} : angle;
  }
  std::int64_t visible_keys(std::int64_t i) const { return p_.causal ? std::min(i + 1, tk_) : tk_; }
  Real power_of_decay(std::int64_t n) const { return decay_power<Real>(p_, head_, n); }

  void take_gradients() {
    dout_ = arena_.take<Real>(tq_ * p_.value_dim);
    dden_ = arena_.take<Real>(tq_);
    dqf_ = arena_.take<Real>(tq_ * 2 * p_.dim);
    dkf_ = arena_.take<Real>(tk_ * 2 * p_.dim);
    dv_ = arena_.take<Real>(tk_ * p_.value_dim);
    if (has_incoming_state(p_)) d_state_in_ = arena_.take<Real>(2 * p_.dim * columns_);
    d_state_out_ = arena_.take<Real>(2 * p_.dim * columns_);
  }

  void load() {
    load_rows(p_.dtype, p_.q, s_.batch, head_, s_.q_begin, tq_, p_.dim, q_);
    load_rows(p_.dtype, p_.k, s_.batch, head_, s_.k_begin, tk_, p_.dim, k_);
    load_rows(p_.dtype, p_.v, s_.batch, head_, s_.k_begin, tk_, p_.value_dim, v_);
    for (std::int64_t i = 0; i < tq_; ++i) features_of(q_ + i * p_.dim, i, true, qf_ + i * 2 * p_.dim);
    for (std::int64_t j = 0; j < tk_; ++j) {
      features_of(k_ + j * p_.dim, j, key_is_present(p_, s_, j), kf_ + j * 2 * p_.dim);
    }
    const double theta = theta_of(p_, s_, head_);
    for (std::int64_t delta = 0; delta <= std::max(tq_, tk_); ++delta) {
      const Real cosine = Form::kDoubledFeatures ? Real(1) : angle_at<Real>(theta, delta, s_.period).cosine;
      table_[delta] = magnitude(round(cosine * power_of_decay(delta)));
    }
    if (state_ != nullptr) load_state(p_, p_.state_kv_in, p_.state_z_in, sequence_, head_, state_);
  }

  // Naive: [φ cos, φ sin], 2d numbers. By definition: φ in the first d, the same doubled features being needed only
  // against a carried state.
  void features_of(const Real* x, std::int64_t t, bool present, Real* f) const {
    const Angle<Real> angle = angle_of(t);
    for (std::int64_t c = 0; c < p_.dim; ++c) {
      const Real phi = present ? magnitude(round(apply_feature_map(p_.feature_map, x[c]))) : Real(0);
      f[c] = Form::kDoubledFeatures ? round(phi * round(angle.cosine)) : phi;
      f[p_.dim + c] = Form::kDoubledFeatures ? round(phi * round(angle.sine)) : Real(0);
    }
  }

  // The doubled features of a token for products with a carried state.
  Real doubled(const Real* f, std::int64_t t, std::int64_t c) const {
    if (Form::kDoubledFeatures) return f[c];
    const Angle<Real> angle = angle_of(t);
    return c < p_.dim ? f[c] * angle.cosine : f[c - p_.dim] * angle.sine;
  }

  void add_doubled(Real* df, std::int64_t t, std::int64_t c, Real value) const {
    if (Form::kDoubledFeatures) {
      df[c] += value;
      return;
    }
    const Angle<Real> angle = angle_of(t);
    if (c < p_.dim) {
      df[c] += value * angle.cosine;
    } else {
      df[c - p_.dim] += value * angle.sine;
    }
  }

  void forward_row(std::int64_t i) {
    const std::int64_t keys = visible_keys(i);
    Real* out = out_ + i * p_.value_dim;
    std::fill_n(out, p_.value_dim, Real(0));
    Real sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!key_is_present(p_, s_, j)) continue;
      const Real w = weight(i, j);
      sum += w;
      for (std::int64_t c = 0; c < p_.value_dim; ++c) out[c] += w * v_[j * p_.value_dim + c];
    }
    for (std::int64_t c = 0; state_ != nullptr && c < 2 * p_.dim; ++c) {
      const Real f = round(doubled(qf_ + i * 2 * p_.dim, i, c) * power_of_decay(i + 1));
      for (std::int64_t e = 0; e < p_.value_dim; ++e) out[e] += f * state_[c * columns_ + e];
      sum += f * state_[c * columns_ + p_.value_dim];
    }
    den_[i] =
        Form::kMagnitudes && p_.denominator.data != nullptr ? load_denominator<Real>(p_, s_, head_, i) : round(sum);
    const Real divisor = p_.normalizer == Normalizer::kSum ? std::max(den_[i], static_cast<Real>(p_.eps)) : Real(1);
    for (std::int64_t c = 0; c < p_.value_dim; ++c) out[c] = round(out[c]) / divisor;
  }

  Real weight(std::int64_t i, std::int64_t j) const {
    return round(round(dot(qf_ + i * 2 * p_.dim, kf_ + j * 2 * p_.dim, features_)) * table_[std::abs(i - j)]);
  }

  // Turns dout_i into the gradient of the row's weighted sum, and finds that of its denominator.
  void gradient_of_row_sums(std::int64_t i) {
    dden_[i] = 0;
    if (p_.normalizer != Normalizer::kSum) return;
    Real* g = dout_ + i * p_.value_dim;
    const Real sum = load_denominator<Real>(p_, s_, head_, i);
    const bool clamped = sum < static_cast<Real>(p_.eps);
    const Real divisor = clamped ? static_cast<Real>(p_.eps) : sum;
    const Real inner = dot(g, out_ + i * p_.value_dim, p_.value_dim) / divisor;
    if (!clamped) dden_[i] = round(Form::kMagnitudes ? inner : -inner);
    for (std::int64_t c = 0; c < p_.value_dim; ++c) g[c] = round(g[c] / divisor);
  }

  void backward_row(std::int64_t i) {
    const Real* g = dout_ + i * p_.value_dim;
    const Real* qf = qf_ + i * 2 * p_.dim;
    for (std::int64_t j = 0; j < visible_keys(i); ++j) {
      if (!key_is_present(p_, s_, j)) continue;
      const Real* kf = kf_ + j * 2 * p_.dim;
      const Real w = weight(i, j);
      const Real dw = round(round(dot(g, v_ + j * p_.value_dim, p_.value_dim)) + dden_[i]);
      const Real dscore = round(dw * table_[std::abs(i - j)]);
      for (std::int64_t c = 0; c < p_.value_dim; ++c) dv_[j * p_.value_dim + c] += w * g[c];
      for (std::int64_t c = 0; c < features_; ++c) {
        dqf_[i * 2 * p_.dim + c] += dscore * kf[c];
        dkf_[j * 2 * p_.dim + c] += dscore * qf[c];
      }
      dln_ += static_cast<Real>(std::abs(i - j)) * w * dw;
    }
  }

  void backward_of_incoming_state() {
    std::fill_n(d_state_in_, 2 * p_.dim * columns_, Real(0));
    for (std::int64_t i = 0; i < tq_; ++i) {
      const Real* g = dout_ + i * p_.value_dim;
      const Real power = power_of_decay(i + 1);
      for (std::int64_t c = 0; c < 2 * p_.dim; ++c) {
        const Real* row = state_ + c * columns_;
        Real* d_row = d_state_in_ + c * columns_;
        const Real f = round(doubled(qf_ + i * 2 * p_.dim, i, c) * power);
        const Real df = dot(g, row, p_.value_dim) + dden_[i] * row[p_.value_dim];
        add_doubled(dqf_ + i * 2 * p_.dim, i, c, df * power);
        dln_ += static_cast<Real>(i + 1) * f * df;
        for (std::int64_t e = 0; e < p_.value_dim; ++e) d_row[e] += f * g[e];
        d_row[p_.value_dim] += f * dden_[i];
      }
    }
  }

  void backward_of_outgoing_state() {
    for (std::int64_t j = 0; j < tk_; ++j) {
      const Real power = power_of_decay(tk_ - 1 - j);
      const Real* v = v_ + j * p_.value_dim;
      for (std::int64_t c = 0; c < 2 * p_.dim; ++c) {
        const Real* d_row = d_state_out_ + c * columns_;
        const Real f = round(doubled(kf_ + j * 2 * p_.dim, j, c) * power);
        const Real df = dot(v, d_row, p_.value_dim) + d_row[p_.value_dim];
        add_doubled(dkf_ + j * 2 * p_.dim, j, c, df * power);
        dln_ += static_cast<Real>(tk_ - 1 - j) * f * df;
        for (std::int64_t e = 0; e < p_.value_dim; ++e) dv_[j * p_.value_dim + e] += f * d_row[e];
      }
    }
    const Real power = power_of_decay(tk_);
    for (std::int64_t at = 0; state_ != nullptr && at < 2 * p_.dim * columns_; ++at) {
      dln_ += static_cast<Real>(tk_) * power * state_[at] * d_state_out_[at];
      d_state_in_[at] += power * d_state_out_[at];
    }
  }

  void write_state() {
    const Real carried = power_of_decay(tk_);
    for (std::int64_t at = 0; at < 2 * p_.dim * columns_; ++at) {
      state_out_[at] = state_ != nullptr ? carried * state_[at] : Real(0);
    }
    for (std::int64_t j = 0; j < tk_; ++j) {
      const Real power = power_of_decay(tk_ - 1 - j);
      for (std::int64_t c = 0; c < 2 * p_.dim; ++c) {
        const Real f = round(power * doubled(kf_ + j * 2 * p_.dim, j, c));
        for (std::int64_t e = 0; e < p_.value_dim; ++e) state_out_[c * columns_ + e] += f * v_[j * p_.value_dim + e];
        state_out_[c * columns_ + p_.value_dim] += f;
      }
    }
    store_state(p_, p_.state_kv_out, p_.state_z_out, sequence_, head_, state_out_);
  }

  // From the features' gradient to the input's: undo the doubling, then the derivative of the map. `kf` is given for
  // keys, where an absent one gets no gradient.
  void finish_inputs(Real* df, const Real* x, std::int64_t length, const Real* kf, const View& into,
                     std::int64_t begin) const {
    for (std::int64_t t = 0; t < length; ++t) {
      const bool present = kf == nullptr || key_is_present(p_, s_, t);
      const Angle<Real> angle = angle_of(t);
      for (std::int64_t c = 0; c < p_.dim; ++c) {
        Real dphi = df[t * 2 * p_.dim + c];
        if (Form::kDoubledFeatures) {
          dphi = round(round(round(dphi) * round(angle.cosine)) +
                       round(round(df[t * 2 * p_.dim + p_.dim + c]) * round(angle.sine)));
        }
        const Real slope = magnitude(round(feature_map_derivative(p_.feature_map, x[t * p_.dim + c])));
        const std::int64_t at = element_offset(into, s_.batch, begin + t, head_) + c;
        store_element(p_.dtype, into.data, at, present ? dphi * slope : Real(0));
      }
    }
  }

  const AttentionProblem& p_;
  const Sequence& s_;
  std::int64_t sequence_, head_;
  Arena arena_;
  std::int64_t tq_, tk_, features_, columns_;
  Real *q_, *k_, *v_, *qf_, *kf_, *table_, *out_, *den_;
  Real *dout_ = nullptr, *dden_ = nullptr, *dqf_ = nullptr, *dkf_ = nullptr, *dv_ = nullptr;
  Real *state_ = nullptr, *state_out_ = nullptr, *d_state_in_ = nullptr, *d_state_out_ = nullptr;
  Real dln_ = 0;
};

// The type to compute in: the naive twin stays in the accumulation type, the definition is one size wider.
template <class Form, class Visit>
auto with_real(DType dtype, Visit visit) {
  constexpr bool kNaive = std::is_same_v<Form, NaiveInDtype>;
  constexpr bool kWidest = std::is_same_v<Form, ByDefinition>;
  if (dtype == DType::kFloat64) return visit(std::conditional_t<kWidest, long double, double>{});
  return visit(std::conditional_t<kNaive, float, double>{});
}

template <class Form>
Schedule plan(const AttentionProblem& p, bool backward) {
  Schedule schedule{.phases = 1, .items = {p.sequence_count * p.heads}};
  for (std::int64_t s = 0; s < p.sequence_count; ++s) {
    const std::size_t bytes = with_real<Form>(p.dtype, [&](auto real) {
      QuadraticHead<decltype(real), Form> head(p, s, 0, nullptr);
      return backward ? head.backward_scratch() : head.forward_scratch();
    });
    schedule.scratch_bytes = std::max(schedule.scratch_bytes, bytes);
  }
  return schedule;
}

template <class Form>
Schedule plan_fwd(const AttentionProblem& p, int) {
  return plan<Form>(p, false);
}

template <class Form>
Schedule plan_bwd(const AttentionProblem& p, const AttentionGradients&, int) {
  return plan<Form>(p, true);
}

template <class Form>
void run_fwd(const AttentionProblem& p, const Schedule&, const Work& work) {
  for (std::int64_t item = work.begin; item < work.end; ++item) {
    with_real<Form>(p.dtype, [&](auto real) {
      QuadraticHead<decltype(real), Form>(p, item / p.heads, item % p.heads, work.scratch).forward();
    });
  }
}

template <class Form>
void run_bwd(const AttentionProblem& p, const AttentionGradients& grads, const Schedule&, const Work& work) {
  for (std::int64_t item = work.begin; item < work.end; ++item) {
    with_real<Form>(p.dtype, [&](auto real) {
      QuadraticHead<decltype(real), Form>(p, item / p.heads, item % p.heads, work.scratch).backward(grads);
    });
  }
}

}  // namespace

const AttentionKernels& quadratic_kernels() {
  static constexpr AttentionKernels kKernels{"quadratic", plan_fwd<ByDefinition>, run_fwd<ByDefinition>,
                                             plan_bwd<ByDefinition>, run_bwd<ByDefinition>};
  return kKernels;
}

const AttentionKernels& double_quadratic_kernels() {
  static constexpr AttentionKernels kKernels{"quadratic in double", plan_fwd<ByDefinitionInDouble>,
                                             run_fwd<ByDefinitionInDouble>, plan_bwd<ByDefinitionInDouble>,
                                             run_bwd<ByDefinitionInDouble>};
  return kKernels;
}

const AttentionKernels& naive_quadratic_kernels() {
  static constexpr AttentionKernels kKernels{"naive quadratic", plan_fwd<NaiveInDtype>, run_fwd<NaiveInDtype>,
                                             plan_bwd<NaiveInDtype>, run_bwd<NaiveInDtype>};
  return kKernels;
}

const AttentionKernels& magnitude_kernels() {
  static constexpr AttentionKernels kKernels{"magnitudes", plan_fwd<OnMagnitudes>, run_fwd<OnMagnitudes>,
                                             plan_bwd<OnMagnitudes>, run_bwd<OnMagnitudes>};
  return kKernels;
}

}  // namespace cosformer::kernels::reference
