#include "ops/operator_case.h"

#include <torch/torch.h>

#include "ops/arguments.h"
#include "ops/options.h"

namespace cosformer::ops {
namespace {

using kernels::verify::AttentionCase;
using kernels::verify::CaseData;
using kernels::verify::CaseResult;
using kernels::verify::Layout;

at::Tensor from_doubles(const std::vector<double>& values, at::IntArrayRef shape, at::ScalarType type,
                        at::Device device) {
  const at::Tensor dense = at::empty(shape, at::kDouble);
  std::copy(values.begin(), values.end(), dense.data_ptr<double>());
  return dense.to(type).to(device);
}

// A view with the case's strides over memory of its own.
at::Tensor laid_out(const at::Tensor& x, Layout layout) {
  if (layout == Layout::kHeadMajor) return x.transpose(1, 2).contiguous().transpose(1, 2);
  if (layout == Layout::kTimeMajor) return x.contiguous();
  at::Tensor gapped = at::full({x.size(0), x.size(1), x.size(2) + 1, x.size(3) + 3},
                               std::numeric_limits<double>::quiet_NaN(), x.options());
  at::Tensor inside = gapped.narrow(2, 0, x.size(2)).narrow(3, 0, x.size(3));
  inside.copy_(x);
  return inside;
}

std::vector<double> to_doubles(const at::Tensor& x) {
  const at::Tensor dense = x.detach().to(at::kCPU).to(at::kDouble).contiguous();
  return {dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel()};
}

at::Tensor boundaries(const std::vector<std::int64_t>& lengths, std::uint64_t seed, at::Device device) {
  at::Tensor cu = at::zeros({static_cast<std::int64_t>(lengths.size()) + 1}, at::kLong);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    cu.data_ptr<std::int64_t>()[s + 1] = cu.data_ptr<std::int64_t>()[s] + lengths[s];
  }
  return (seed % 2 == 0 ? cu.to(at::kInt) : cu).to(device);
}

// Options from how a case has them.
template <class T>
void set(T& option, const T& value) {
  option = value;
}
void set(std::string& option, kernels::FeatureMap value) {
  option = kFeatureMaps.at(static_cast<std::size_t>(value));
}
void set(std::string& option, kernels::Normalizer value) {
  option = kNormalizers.at(static_cast<std::size_t>(value));
}

}  // namespace

at::ScalarType scalar_type_of(kernels::DType dtype) {
  switch (dtype) {
    case kernels::DType::kFloat64: return at::kDouble;
    case kernels::DType::kFloat32: return at::kFloat;
    case kernels::DType::kBFloat16: return at::kBFloat16;
    case kernels::DType::kFloat16: return at::kHalf;
  }
  return at::kFloat;
}

CaseTensors make_tensors(const AttentionCase& c, const CaseData& data, at::Device device) {
  const at::ScalarType type = scalar_type_of(c.dtype);
  const at::ScalarType accumulation = accumulation_type(type);
  const auto input = [&](const std::vector<double>& values, std::int64_t time, std::int64_t width) {
    const at::Tensor dense = from_doubles(values, {c.batch, time, c.heads, width}, type, device);
    return laid_out(dense, c.layout);
  };
  CaseTensors t;
  t.q = input(data.q, c.q_total(), c.dim).requires_grad_();
  t.k = input(data.k, c.k_total(), c.dim).requires_grad_();
  t.v = input(data.v, c.k_total(), c.value_dim).requires_grad_();
  t.dout = input(data.dout, c.q_total(), c.value_dim);
  const at::ScalarType per_head = c.dtype == kernels::DType::kFloat64 ? at::kDouble : at::kFloat;
  if (c.theta_per_head) t.options.theta = from_doubles(data.theta, {c.heads}, per_head, device);
  if (c.decay) t.options.log_decay = from_doubles(data.log_decay, {c.heads}, per_head, device).requires_grad_();
  if (c.horizon > 0 && c.reweight) t.options.horizon = c.horizon;
  t.options.reweight = c.reweight;
  for_each_option<kPlain>([](const Field&, auto& option, const auto& of_case) { set(option, of_case); }, t.options, c);
  if (c.key_mask) {
    const std::vector<double> mask(data.key_mask.begin(), data.key_mask.end());
    t.options.key_mask = from_doubles(mask, {c.batch, c.k_total()}, at::kBool, device);
  }
  if (c.packed) {
    t.options.cu_seqlens_q = boundaries(c.q_lengths, c.seed, device);
    const bool shared = c.q_lengths == c.k_lengths && c.seed % 4 < 2;  // as of self-attention
    t.options.cu_seqlens_k = shared ? t.options.cu_seqlens_q : boundaries(c.k_lengths, c.seed / 2, device);
  }
  if (!c.carry_state) return t;
  t.stream = stream_options(t.options);
  t.stream.horizon = c.horizon;
  const std::vector<std::int64_t> kv_shape{c.batch, c.heads, 2, c.dim, c.value_dim},
      z_shape{c.batch, c.heads, 2, c.dim};
  t.state.kv = from_doubles(data.state_kv, kv_shape, accumulation, device).requires_grad_();
  t.state.z = from_doubles(data.state_z, z_shape, accumulation, device).requires_grad_();
  t.state.position = at::full({c.batch}, c.position, at::TensorOptions().dtype(at::kLong).device(device));
  t.d_kv = from_doubles(data.d_state_kv, kv_shape, accumulation, device);
  t.d_z = from_doubles(data.d_state_z, z_shape, accumulation, device);
  return t;
}

CaseResult run_operator(const AttentionCase& c, const CaseData& data, at::Device device) {
  const CaseTensors t = make_tensors(c, data, device);
  CaseResult result;
  std::vector<at::Tensor> outputs, arriving, inputs{t.q, t.k, t.v};
  if (c.carry_state) {
    AttentionState state = t.state;
    const at::Tensor out = attention_with_state(t.q, t.k, t.v, state, t.stream);
    outputs = {out, state.kv, state.z};
    arriving = {t.dout, t.d_kv, t.d_z};
    inputs.insert(inputs.end(), {t.state.kv, t.state.z});
    result.state_kv = to_doubles(state.kv);
    result.state_z = to_doubles(state.z);
  } else {
    outputs = {attention(t.q, t.k, t.v, t.options)};
    arriving = {t.dout};
  }
  if (c.decay) inputs.push_back(t.options.log_decay);
  result.out = to_doubles(outputs[0]);
  const auto gradients = torch::autograd::grad(outputs, inputs, arriving);
  result.dq = to_doubles(gradients[0]);
  result.dk = to_doubles(gradients[1]);
  result.dv = to_doubles(gradients[2]);
  if (c.carry_state) {
    result.d_state_kv = to_doubles(gradients[3]);
    result.d_state_z = to_doubles(gradients[4]);
  }
  if (c.decay) result.d_log_decay = to_doubles(gradients.back());
  return result;
}

}  // namespace cosformer::ops
