// From tensors and options to a problem of the kernels, and from its gradients back to tensors: the same for every
// device. What is a device's own, its sequences, workspace, threads and streams, is in its folder.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <ATen/ATen.h>
#include <c10/util/SmallVector.h>

#include "ops/device_ops.h"
#include "ops/tensor_views.h"

namespace cosformer::ops {

// A θ and the period of positions for a horizon of M tokens; of a problem, or of a sequence.
template <class Angle>
void set_angle(Angle& angle, double horizon) {
  if (!std::isfinite(horizon) || horizon == 0) return;
  angle.theta = std::numbers::pi / (2.0 * horizon);
  if (horizon == std::floor(horizon) && horizon < 0x1p60) angle.period = 4 * static_cast<std::int64_t>(horizon);
}

// Memory for a pass to write, of whatever type the kernels' pointer has.
inline void point(void*& to, const at::Tensor& x) {
  to = x.data_ptr();
}
inline void point(const void*& to, const at::Tensor& x) {
  to = x.data_ptr();
}
template <class T>
void point(T*& to, const at::Tensor& x) {
  to = x.data_ptr<std::remove_const_t<T>>();
}

// A problem (kernels::AttentionProblem, kernels::cuda::Problem) and the converted tensors that it points to. Devices
// derive from it and add how their problem names sequences and angles.
template <class Problem>
class FilledProblem {
 public:
  explicit FilledProblem(const AttentionArguments& a) {
    problem.dtype = dtype_of(a.q.scalar_type());
    problem.heads = a.q.size(2);
    problem.dim = a.q.size(3);
    problem.value_dim = a.v.size(3);
    problem.q = const_view(a.q);
    problem.k = const_view(a.k);
    problem.v = const_view(a.v);
    for_each_option<kPlain>([this](const Field&, const auto& from, auto& to) { set(to, from); }, a.options, problem);
    set(problem.log_decay, a.options.log_decay);
    if (const at::Tensor& mask = a.options.key_mask; mask.defined()) {
      problem.key_mask = mask.data_ptr<bool>();
      problem.mask_batch_stride = mask.stride(0);
      problem.mask_time_stride = mask.stride(1);
    }
    if (!a.has_state()) return;
    point(problem.state_kv_in, kept(a.state_kv.contiguous()));
    point(problem.state_z_in, kept(a.state_z.contiguous()));
  }
  FilledProblem(const FilledProblem&) = delete;
  FilledProblem& operator=(const FilledProblem&) = delete;

  // Where a forward pass writes, and what a backward pass reads again.
  void set_results(const at::Tensor& out, const at::Tensor& denominator) {
    problem.out = view(out);
    if (problem.normalizer == kernels::Normalizer::kSum) problem.denominator = view(denominator);
  }

  Problem problem;

 protected:
  // As long as the problem.
  const at::Tensor& kept(at::Tensor x) {
    tensors_.push_back(std::move(x));
    return tensors_.back();
  }

  // Options as kernels have them: numbers as they are, names as numbers, tensors dense and in the type that is pointed
  // to, null where absent.
  void set(bool& to, bool from) { to = from; }
  void set(double& to, double from) { to = from; }
  void set(kernels::FeatureMap& to, const std::string& from) { to = named<kernels::FeatureMap>(from, kFeatureMaps); }
  void set(kernels::Normalizer& to, const std::string& from) { to = named<kernels::Normalizer>(from, kNormalizers); }
  template <class T>
  void set(const T*& to, const at::Tensor& from) {
    if (from.defined()) point(to, kept(from.detach().to(c10::CppTypeToScalarType<T>::value).contiguous()));
  }

 private:
  template <class Enum, std::size_t kCount>
  static Enum named(const std::string& name, const std::array<const char*, kCount>& names) {
    for (std::size_t at = 0; at < kCount; ++at) {
      if (name == names[at]) return static_cast<Enum>(at);
    }
    TORCH_INTERNAL_ASSERT(false, "an option's name that was not checked: ", name);
  }

  c10::SmallVector<at::Tensor, 8> tensors_;
};

// The gradients of a backward pass (kernels::AttentionGradients, kernels::cuda::Gradients), in new tensors that become
// the result. `empty(sizes, options)` makes those of q, k and v. Kernels leave the gradients of what all sequences have
// in common in parts, one for each of `parts` sequences, or sum them themselves.
template <class Gradients>
class FilledGradients {
 public:
  template <class Empty>
  FilledGradients(const BackwardInputs& in, const AttentionArguments& a, const Empty& empty,
                  std::optional<std::int64_t> parts = {})
      : parts_(parts) {
    // A gradient that arrives expanded (from a sum, say) has stride 0 in its last dimension; kernels want 1.
    dout_ = in.dout.stride(3) == 1 ? in.dout : in.dout.contiguous();
    result_.d.q = empty(a.q.sizes(), a.q.options());
    result_.d.k = empty(a.k.sizes(), a.k.options());
    result_.d.v = empty(a.v.sizes(), a.v.options());
    gradients.dout = const_view(dout_);
    gradients.dq = view(result_.d.q);
    gradients.dk = view(result_.d.k);
    gradients.dv = view(result_.d.v);
    if (const at::Tensor& decay = a.options.log_decay; decay.defined()) {
      const auto numbers = decay.options().dtype(at::kDouble);
      d_log_decay_ = parts ? at::zeros({*parts, decay.size(0)}, numbers) : at::empty({decay.size(0)}, numbers);
      point(gradients.d_log_decay, d_log_decay_);
      log_decay_type_ = decay.scalar_type();
    }
    if (!a.has_state()) return;
    d_kv_out_ = in.d_state_kv.contiguous();
    d_z_out_ = in.d_state_z.contiguous();
    result_.d.state_kv = at::empty(a.state_kv.sizes(), a.state_kv.options());
    result_.d.state_z = at::empty(a.state_z.sizes(), a.state_z.options());
    point(gradients.d_state_kv_out, d_kv_out_);
    point(gradients.d_state_z_out, d_z_out_);
    point(gradients.d_state_kv_in, result_.d.state_kv);
    point(gradients.d_state_z_in, result_.d.state_z);
  }
  FilledGradients(const FilledGradients&) = delete;
  FilledGradients& operator=(const FilledGradients&) = delete;

  // When the kernels have run, or on a GPU will have.
  BackwardResult result() {
    if (d_log_decay_.defined()) {
      result_.d.options.log_decay = (parts_ ? d_log_decay_.sum(0) : d_log_decay_).to(log_decay_type_);
    }
    return result_;
  }

  Gradients gradients;

 private:
  BackwardResult result_;
  std::optional<std::int64_t> parts_;
  at::Tensor dout_, d_kv_out_, d_z_out_, d_log_decay_;
  at::ScalarType log_decay_type_ = at::kFloat;
};

}  // namespace cosformer::ops
