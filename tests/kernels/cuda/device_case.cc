#include "device_case.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "device_memory.h"
#include "device_run.h"
#include "kernels/reference/head_arrays.h"

namespace cosformer::kernels::cuda::testing {
namespace {

using reference::element_offset;
using verify::AttentionCase;
using verify::CaseData;
using verify::CaseResult;
using verify::Layout;

// A [batch, time, heads, width] tensor on the device, in the case's layout and dtype.
class DeviceTensor {
 public:
  DeviceTensor(const AttentionCase& c, std::int64_t time, std::int64_t width)
      : dtype_(c.dtype), batch_(c.batch), time_(time), heads_(c.heads), width_(width) {
    // Gaps that leave rows aligned, as in slices of a wider tensor, and gaps that do not.
    const std::int64_t gap = c.layout != Layout::kGapped ? 0 : (width % 16 == 0 ? 8 : 3);
    const std::int64_t row = width + gap;
    view_.time_stride = c.layout == Layout::kHeadMajor ? row : row * c.heads + gap;
    view_.head_stride = c.layout == Layout::kHeadMajor ? row * std::max<std::int64_t>(time, 1) : row;
    view_.batch_stride = (row * c.heads + gap) * std::max<std::int64_t>(time, 1);
    bytes_ = static_cast<std::size_t>(batch_ * view_.batch_stride + 16) * size_of(dtype_);
    memory_ = DeviceMemory(bytes_);
    view_.data = memory_.data();
  }

  void fill(const std::vector<double>& dense) {
    std::vector<std::uint8_t> host(bytes_, 0xff);
    std::size_t at = 0;
    each([&](std::int64_t offset) { reference::store_element(dtype_, host.data(), offset, dense[at++]); });
    memory_ = DeviceMemory(host);
    view_.data = memory_.data();
  }

  // The tensor's numbers; throws if a kernel wrote between or behind them.
  std::vector<double> dense() const {
    std::vector<std::uint8_t> host = memory_.read<std::uint8_t>();
    std::vector<double> values;
    const auto size = static_cast<std::int64_t>(size_of(dtype_));
    each([&](std::int64_t offset) {
      values.push_back(reference::load_element<double>(dtype_, host.data(), offset));
      std::fill_n(host.begin() + offset * size, size, std::uint8_t{0xff});
    });
    if (std::any_of(host.begin(), host.end(), [](std::uint8_t byte) { return byte != 0xff; })) {
      throw std::runtime_error("a kernel wrote outside its tensor");
    }
    return values;
  }

  View view() const { return view_; }
  ConstView const_view() const { return {view_.data, view_.batch_stride, view_.time_stride, view_.head_stride}; }

 private:
  template <class Visit>
  void each(Visit visit) const {
    for (std::int64_t b = 0; b < batch_; ++b) {
      for (std::int64_t t = 0; t < time_; ++t) {
        for (std::int64_t h = 0; h < heads_; ++h) {
          for (std::int64_t e = 0; e < width_; ++e) visit(element_offset(view_, b, t, h) + e);
        }
      }
    }
  }

  DType dtype_;
  std::int64_t batch_, time_, heads_, width_;
  std::size_t bytes_ = 0;
  DeviceMemory memory_;
  View view_;
};

template <class To, class From>
DeviceMemory converted(const From& values) {
  return DeviceMemory(std::vector<To>(values.begin(), values.end()));
}

std::vector<double> widened(const DeviceMemory& memory) {
  const std::vector<float> values = memory.read<float>();
  return {values.begin(), values.end()};
}

template <class Enqueue>
void run(Path path, const Enqueue& enqueue) {
  run_launches(path == Path::kCaptured, enqueue);
}

}  // namespace

CaseResult run_on_device(const AttentionCase& c, const CaseData& data, Path path) {
  DeviceTensor q(c, c.q_total(), c.dim), k(c, c.k_total(), c.dim), v(c, c.k_total(), c.value_dim);
  DeviceTensor out(c, c.q_total(), c.value_dim), dout(c, c.q_total(), c.value_dim);
  DeviceTensor dq(c, c.q_total(), c.dim), dk(c, c.k_total(), c.dim), dv(c, c.k_total(), c.value_dim);
  q.fill(data.q);
  k.fill(data.k);
  v.fill(data.v);
  dout.fill(data.dout);

  Problem p;
  p.dtype = c.dtype;
  p.heads = c.heads;
  p.dim = c.dim;
  p.value_dim = c.value_dim;
  p.causal = c.causal;
  p.feature_map = c.feature_map;
  p.normalizer = c.normalizer;
  p.eps = c.eps;
  p.sequences = static_cast<std::int64_t>(data.sequences.size());
  std::vector<std::int32_t> cu_q{0}, cu_k{0};
  std::vector<std::int64_t> positions;
  for (const Sequence& s : data.sequences) {
    p.q_length = std::max(p.q_length, s.q_length);
    p.k_length = std::max(p.k_length, s.k_length);
    cu_q.push_back(cu_q.back() + static_cast<std::int32_t>(s.q_length));
    cu_k.push_back(cu_k.back() + static_cast<std::int32_t>(s.k_length));
    positions.push_back(s.position);
  }
  const DeviceMemory cu_q_memory(cu_q), cu_k_memory(cu_k), position_memory(positions);
  if (c.packed) {
    p.cu_seqlens_q = cu_q_memory.data<std::int32_t>();
    p.cu_seqlens_k = cu_k_memory.data<std::int32_t>();
    p.total_q = cu_q.back();
    p.q_length += 37;  // only an upper bound is promised
    p.k_length += 5;
    if (cu_q == cu_k && c.seed % 4 != 3) {  // the same tokens, as of self-attention
      p.cu_seqlens_k = p.cu_seqlens_q;
      p.k_length = p.q_length;
    }
  }
  if (!data.sequences.empty()) {
    p.theta = data.sequences.front().theta;
    p.period = data.sequences.front().period;
  }
  p.theta_from_length = c.packed && c.horizon == 0 && c.reweight;
  if (c.carry_state) p.position = position_memory.data<std::int64_t>();
  const DeviceMemory theta = converted<float>(data.theta), log_decay = converted<float>(data.log_decay);
  p.theta_per_head = theta.data<float>();
  p.log_decay = log_decay.data<float>();
  const DeviceMemory mask = converted<std::uint8_t>(data.key_mask);
  if (c.key_mask) {
    p.key_mask = mask.data<bool>();
    p.mask_batch_stride = c.k_total();
    p.mask_time_stride = 1;
  }
  p.q = q.const_view();
  p.k = k.const_view();
  p.v = v.const_view();
  p.out = out.view();
  const DeviceMemory denominators(static_cast<std::size_t>(c.batch * c.q_total() * c.heads) * sizeof(float));
  if (c.normalizer == Normalizer::kSum) {
    const bool by_heads = c.seed % 2 == 0;
    p.denominator = {denominators.data(), c.q_total() * c.heads, by_heads ? 1 : c.heads, by_heads ? c.q_total() : 1};
  }
  const DeviceMemory kv_in = converted<float>(data.state_kv), z_in = converted<float>(data.state_z);
  const DeviceMemory kv_out(kv_in.bytes()), z_out(z_in.bytes());
  p.state_kv_in = kv_in.data<float>();
  p.state_z_in = z_in.data<float>();
  p.state_kv_out = kv_out.data<float>();
  p.state_z_out = z_out.data<float>();

  // Handed from the forward to the backward pass in two of three cases; a float more than there are, which nobody
  // writes.
  const bool hands_over = c.seed % 3 != 0;
  if (hands_over) p.keep_key_sums = KeepSums::kAlways;
  const Device device = this_device();
  const Choice choice = choose(p, nullptr, device);
  const DeviceMemory key_sums(hands_over ? static_cast<std::size_t>(choice.key_sum_floats + 1) * sizeof(float) : 0);
  p.key_sums = key_sums.data<float>();
  if (path == Path::kDecode && choice.family != Family::kDecode) {
    throw std::runtime_error("a case for the decode kernel went elsewhere: " + explain(p, nullptr, choice));
  }
  {
    const DeviceMemory workspace(choice.workspace.bytes);
    run(path,
        [&](cudaStream_t stream) { return attention_fwd(p, choice, workspace.data(), workspace.bytes(), stream); });
  }
  CaseResult result;
  result.out = out.dense();
  if (c.carry_state) {
    result.state_kv = widened(kv_out);
    result.state_z = widened(z_out);
  }
  if (path == Path::kDecode) return result;

  const DeviceMemory dkv_out = converted<float>(data.d_state_kv), dz_out = converted<float>(data.d_state_z);
  const DeviceMemory dkv_in(kv_in.bytes()), dz_in(z_in.bytes());
  const DeviceMemory decay_gradient(c.decay ? static_cast<std::size_t>(c.heads) * sizeof(double) : 0);
  Gradients g;
  g.dout = dout.const_view();
  g.dq = dq.view();
  g.dk = dk.view();
  g.dv = dv.view();
  g.d_state_kv_out = dkv_out.data<float>();
  g.d_state_z_out = dz_out.data<float>();
  g.d_state_kv_in = dkv_in.data<float>();
  g.d_state_z_in = dz_in.data<float>();
  g.d_log_decay = decay_gradient.data<double>();
  p.state_kv_out = nullptr;
  p.state_z_out = nullptr;
  const Choice bwd_choice = choose(p, &g, device);
  const DeviceMemory workspace(bwd_choice.workspace.bytes);
  run(path, [&](cudaStream_t stream) {
    return attention_bwd(p, g, bwd_choice, workspace.data(), workspace.bytes(), stream);
  });
  if (hands_over && key_sums.read<std::uint32_t>().back() != ~0U) throw std::runtime_error("written beyond key_sums");
  result.dq = dq.dense();
  result.dk = dk.dense();
  result.dv = dv.dense();
  if (c.carry_state) {
    result.d_state_kv = widened(dkv_in);
    result.d_state_z = widened(dz_in);
  }
  if (c.decay) result.d_log_decay = decay_gradient.read<double>();
  return result;
}

}  // namespace cosformer::kernels::cuda::testing
