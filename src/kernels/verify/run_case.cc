#include "kernels/verify/run_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <thread>

#include "kernels/reference/head_arrays.h"
#include "kernels/reference/reference.h"

namespace cosformer::kernels::verify {
namespace {

using reference::accumulation_of;
using reference::load_element;
using reference::store_element;

// 64-byte aligned bytes, all ones: every float in them is a NaN until somebody writes it.
class PoisonedMemory {
 public:
  explicit PoisonedMemory(std::size_t bytes)
      : data_(static_cast<std::byte*>(::operator new (std::max<std::size_t>(bytes, 64), std::align_val_t{64}))) {
    std::fill_n(data_.get(), std::max<std::size_t>(bytes, 64), std::byte{0xff});
  }
  void* data() { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

// A [batch, time, heads, width] tensor in the case's layout and a dtype.
class CaseTensor {
 public:
  CaseTensor(const AttentionCase& c, std::int64_t time, std::int64_t width, DType dtype)
      : dtype_(dtype), batch_(c.batch), time_(time), heads_(c.heads), width_(width), memory_(bytes(c)) {
    const std::int64_t gap = c.layout == Layout::kGapped ? 3 : 0;
    const std::int64_t row = width + gap;
    view_.data = memory_.data();
    view_.time_stride = c.layout == Layout::kHeadMajor ? row : row * c.heads + gap;
    view_.head_stride = c.layout == Layout::kHeadMajor ? row * std::max<std::int64_t>(time, 1) : row;
    view_.batch_stride = (row * c.heads + gap) * std::max<std::int64_t>(time, 1);
  }

  void fill(const std::vector<double>& dense) {
    std::size_t at = 0;
    each([&](std::int64_t offset) { store_element(dtype_, view_.data, offset, dense[at++]); });
  }

  std::vector<double> dense() const {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(batch_ * time_ * heads_ * width_));
    each([&](std::int64_t offset) { values.push_back(load_element<double>(dtype_, view_.data, offset)); });
    return values;
  }

  View view() const { return view_; }
  ConstView const_view() const { return {view_.data, view_.batch_stride, view_.time_stride, view_.head_stride}; }

 private:
  std::size_t bytes(const AttentionCase& c) const {
    return static_cast<std::size_t>(batch_ * std::max<std::int64_t>(time_, 1) * ((width_ + 3) * c.heads + 3)) *
           size_of(dtype_);
  }

  template <class Visit>
  void each(Visit visit) const {
    for (std::int64_t b = 0; b < batch_; ++b) {
      for (std::int64_t t = 0; t < time_; ++t) {
        for (std::int64_t h = 0; h < heads_; ++h) {
          for (std::int64_t e = 0; e < width_; ++e) visit(reference::element_offset(view_, b, t, h) + e);
        }
      }
    }
  }

  DType dtype_;
  std::int64_t batch_, time_, heads_, width_;
  PoisonedMemory memory_;
  View view_;
};

// A dense array in the accumulation type.
class StateTensor {
 public:
  StateTensor(std::size_t count, DType dtype) : count_(count), dtype_(dtype), memory_(count * size_of(dtype)) {}
  StateTensor(const std::vector<double>& values, DType dtype) : StateTensor(values.size(), dtype) {
    for (std::size_t at = 0; at < values.size(); ++at) {
      store_element(dtype, memory_.data(), static_cast<std::int64_t>(at), values[at]);
    }
  }
  void* data() { return count_ == 0 ? nullptr : memory_.data(); }
  std::vector<double> values() {
    std::vector<double> result(count_);
    for (std::size_t at = 0; at < count_; ++at) {
      result[at] = load_element<double>(dtype_, memory_.data(), static_cast<std::int64_t>(at));
    }
    return result;
  }

 private:
  std::size_t count_;
  DType dtype_;
  PoisonedMemory memory_;
};

std::vector<double> absolute(std::vector<double> values) {
  for (double& x : values) x = std::abs(x);
  return values;
}

// `denominators`: those of the oracle, for the magnitude form, which reads them; otherwise poisoned and written.
CaseResult run(const AttentionKernels& kernels, const AttentionCase& c, const CaseData& data, DType dtype, int threads,
               StateTensor& denominators) {
  const DType accumulation = accumulation_of(dtype);
  CaseTensor q(c, c.q_total(), c.dim, dtype), k(c, c.k_total(), c.dim, dtype), v(c, c.k_total(), c.value_dim, dtype);
  CaseTensor out(c, c.q_total(), c.value_dim, dtype), dout(c, c.q_total(), c.value_dim, dtype);
  CaseTensor dq(c, c.q_total(), c.dim, dtype), dk(c, c.k_total(), c.dim, dtype), dv(c, c.k_total(), c.value_dim, dtype);
  q.fill(data.q);
  k.fill(data.k);
  v.fill(data.v);
  dout.fill(data.dout);
  const std::unique_ptr<bool[]> mask(new bool[data.key_mask.size() + 1]);
  std::copy(data.key_mask.begin(), data.key_mask.end(), mask.get());

  AttentionProblem p;
  p.dtype = dtype;
  p.heads = c.heads;
  p.dim = c.dim;
  p.value_dim = c.value_dim;
  p.causal = c.causal;
  p.feature_map = c.feature_map;
  p.normalizer = c.normalizer;
  p.eps = c.eps;
  p.sequences = data.sequences.data();
  p.sequence_count = static_cast<std::int64_t>(data.sequences.size());
  p.theta = data.theta.empty() ? nullptr : data.theta.data();
  p.log_decay = data.log_decay.empty() ? nullptr : data.log_decay.data();
  if (c.key_mask) {
    p.key_mask = mask.get();
    p.mask_batch_stride = c.k_total();
    p.mask_time_stride = 1;
  }
  p.q = q.const_view();
  p.k = k.const_view();
  p.v = v.const_view();
  p.out = out.view();
  if (c.normalizer == Normalizer::kSum) {
    p.denominator = {denominators.data(), c.q_total() * c.heads, c.heads, 1};
  }
  StateTensor kv_in(data.state_kv, accumulation), z_in(data.state_z, accumulation);
  const std::size_t handed_over =
      c.hand_over_sum ? data.sequences.size() * static_cast<std::size_t>(c.heads * 2 * c.dim) : 0;
  StateTensor kv_out(data.state_kv.size() + handed_over * static_cast<std::size_t>(c.value_dim), accumulation);
  StateTensor z_out(data.state_z.size() + handed_over, accumulation);
  p.state_kv_in = kv_in.data();
  p.state_z_in = z_in.data();
  p.state_kv_out = kv_out.data();
  p.state_z_out = z_out.data();

  const Schedule forward = kernels.plan_fwd(p, threads);
  run_phases(forward, threads, [&](const Work& work) { kernels.run_fwd(p, forward, work); });

  StateTensor dkv_out(data.d_state_kv, accumulation), dz_out(data.d_state_z, accumulation);
  StateTensor dkv_in(data.state_kv.size(), accumulation), dz_in(data.state_z.size(), accumulation);
  const double poison = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> dln(c.decay ? data.sequences.size() * static_cast<std::size_t>(c.heads) : 0, poison);
  AttentionGradients g;
  g.dout = dout.const_view();
  g.dq = dq.view();
  g.dk = dk.view();
  g.dv = dv.view();
  g.d_state_kv_out = dkv_out.data();
  g.d_state_z_out = dz_out.data();
  g.d_state_kv_in = dkv_in.data();
  g.d_state_z_in = dz_in.data();
  g.d_log_decay = dln.empty() ? nullptr : dln.data();
  if (c.hand_over_sum) {
    p.state_kv_in = kv_out.data();
    p.state_z_in = z_out.data();
  }
  p.state_kv_out = nullptr;
  p.state_z_out = nullptr;
  const Schedule backward = kernels.plan_bwd(p, g, threads);
  run_phases(backward, threads, [&](const Work& work) { kernels.run_bwd(p, g, backward, work); });

  CaseResult result;
  result.out = out.dense();
  result.dq = dq.dense();
  result.dk = dk.dense();
  result.dv = dv.dense();
  result.state_kv = kv_out.values();
  result.state_z = z_out.values();
  if (c.carry_state) {
    result.d_state_kv = dkv_in.values();
    result.d_state_z = dz_in.values();
  }
  if (c.decay) {
    result.d_log_decay.assign(static_cast<std::size_t>(c.heads), 0);
    for (std::size_t at = 0; at < dln.size(); ++at) {
      result.d_log_decay[at % static_cast<std::size_t>(c.heads)] += dln[at];
    }
  }
  return result;
}

std::size_t denominator_count(const AttentionCase& c) {
  return static_cast<std::size_t>(c.batch * c.q_total() * c.heads);
}

// What one rounding costs a part of the result. The outgoing state alone never passes through the inputs' dtype: the
// gradients do, by way of `out`, which the backward pass reads back.
double rounding_of(const AttentionCase& c, const std::vector<double> CaseResult::*part) {
  const bool wide = part == &CaseResult::state_kv || part == &CaseResult::state_z;
  return unit_roundoff(wide ? accumulation_of(c.dtype) : c.dtype);
}

Yardstick yardstick_by(const AttentionKernels& exact, const AttentionKernels& magnitudes,
                       const std::vector<const AttentionKernels*>& naive, const AttentionCase& c,
                       const CaseData& data) {
  Yardstick yardstick;
  StateTensor denominators(denominator_count(c), DType::kFloat64);
  yardstick.exact = run(exact, c, data, DType::kFloat64, 1, denominators);
  CaseData positive = data;
  positive.v = absolute(data.v);
  positive.dout = absolute(data.dout);
  positive.state_kv = absolute(data.state_kv);
  positive.state_z = absolute(data.state_z);
  positive.d_state_kv = absolute(data.d_state_kv);
  positive.d_state_z = absolute(data.d_state_z);
  yardstick.magnitudes = run(magnitudes, c, positive, DType::kFloat64, 1, denominators);
  for (const AttentionKernels* form : naive) yardstick.naive.push_back(run_case(*form, c, data, c.dtype));
  return yardstick;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t at = 0; at < a.size(); ++at) {
    const double difference = std::abs(a[at] - b[at]);
    if (!(difference <= most)) most = difference;  // also when it is NaN
    if (std::isnan(most)) return most;
  }
  return most;
}

}  // namespace

const std::vector<NamedPart>& result_parts() {
  static const std::vector<NamedPart> kParts{
      {"out", &CaseResult::out},
      {"state_kv", &CaseResult::state_kv},
      {"state_z", &CaseResult::state_z},
      {"dq", &CaseResult::dq},
      {"dk", &CaseResult::dk},
      {"dv", &CaseResult::dv},
      {"d_kv", &CaseResult::d_state_kv},
      {"d_z", &CaseResult::d_state_z},
      {"d_decay", &CaseResult::d_log_decay},
  };
  return kParts;
}

void run_phases(const Schedule& schedule, int threads, const std::function<void(const Work&)>& pass) {
  PoisonedMemory workspace(schedule.workspace_bytes);
  for (int phase = 0; phase < schedule.phases; ++phase) {
    const std::int64_t items = schedule.items[static_cast<std::size_t>(phase)];
    const std::int64_t share = (items + threads - 1) / threads;
    std::vector<std::thread> workers;
    for (std::int64_t begin = 0; begin < items; begin += share) {
      const std::int64_t end = std::min(items, begin + share);
      const auto body = [&schedule, &pass, &workspace, phase, begin, end] {
        PoisonedMemory scratch(schedule.scratch_bytes);
        pass({phase, begin, end, workspace.data(), scratch.data()});
      };
      if (threads == 1) {
        body();
      } else {
        workers.emplace_back(body);
      }
    }
    for (std::thread& worker : workers) worker.join();
  }
}

CaseResult run_case(const AttentionKernels& kernels, const AttentionCase& c, const CaseData& data, DType dtype,
                    int threads) {
  StateTensor denominators(denominator_count(c), accumulation_of(dtype));
  return run(kernels, c, data, dtype, threads, denominators);
}

Yardstick make_yardstick(const AttentionCase& c, const CaseData& data) {
  const AttentionKernels& exact =
      c.dtype == DType::kFloat64 ? reference::quadratic_kernels() : reference::double_quadratic_kernels();
  return yardstick_by(exact, reference::magnitude_kernels(),
                      {&reference::naive_quadratic_kernels(), &reference::naive_recurrent_kernels()}, c, data);
}

Yardstick make_long_yardstick(const AttentionCase& c, const CaseData& data) {
  // On float64 copies of narrower inputs the naive recurrent form computes in double.
  const AttentionKernels& exact =
      c.dtype == DType::kFloat64 ? reference::recurrent_kernels() : reference::naive_recurrent_kernels();
  return yardstick_by(exact, reference::recurrent_magnitude_kernels(), {&reference::naive_recurrent_kernels()}, c,
                      data);
}

std::vector<PartError> compare(const AttentionCase& c, const Yardstick& yardstick, const CaseResult& result) {
  std::vector<PartError> errors;
  for (const NamedPart& named : result_parts()) {
    const std::vector<double>& exact = yardstick.exact.*named.part;
    if (exact.empty()) continue;
    const std::vector<double>& terms = yardstick.magnitudes.*named.part;
    const double largest_term = *std::max_element(terms.begin(), terms.end());
    double naive_error = 0;
    for (const CaseResult& naive : yardstick.naive) {
      const double error = largest_difference(naive.*named.part, exact);
      if (std::isfinite(error)) naive_error = std::max(naive_error, error);
    }
    PartError error{.name = named.name, .error = std::numeric_limits<double>::quiet_NaN()};
    if ((result.*named.part).size() == exact.size()) error.error = largest_difference(result.*named.part, exact);
    error.bound = std::max(2 * naive_error, 3 * rounding_of(c, named.part) * largest_term);
    errors.push_back(error);
  }
  return errors;
}

}  // namespace cosformer::kernels::verify
