#include "cli/bench/attention_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <thread>

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <torch/cuda.h>
#include <torch/torch.h>

#include "base/table.h"
#include "cli/bench/decode_bench.h"
#include "cli/bench/softmax_error.h"
#include "cli/memory/allocation_peak.h"
#include "cosformer/attention.h"
#include "kernels/cpu/attention.h"
#include "kernels/reference/reference.h"
#include "kernels/verify/run_case.h"
#include "ops/cpu/kernel_choice.h"
#include "ops/operator_case.h"
#include "ops/torch_compat.h"

namespace cosformer::cli {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::DType;

constexpr double kChunk = 32;  // the chunk that the work of the causal form is counted with

// Arithmetic of the form per token and head, additions and multiplications both counted, as docs/kernels.md counts it:
// the pairs inside a chunk as whole squares, gradients of scores once. What is computed beyond that does not count.
double useful_flops(const BenchCase& c) {
  const auto d = static_cast<double>(c.dim), n = static_cast<double>(c.length);
  const bool backward = c.pass != "fwd";
  const double seen = c.causal ? (n + 1) / 2 : n;
  if (c.impl == "softmax" || c.impl == "quadratic") return (4 + (backward ? 10 : 0)) * seen * d;
  if (c.impl == "recurrent") return (8 + (backward ? 24 : 0)) * d * d;
  if (!c.causal) return (8 + (backward ? 16 : 0)) * d * d;
  return (8 + (backward ? 20 : 0)) * d * d + (4 + (backward ? 10 : 0)) * kChunk * d;
}

// Bytes that a pass must move at least, per token and head: inputs read once, results written once.
double useful_bytes(const BenchCase& c) {
  const double element = static_cast<double>(kernels::size_of(c.dtype));
  return (c.pass == "fwd" ? 4.0 : 12.0) * static_cast<double>(c.dim) * element;
}

double token_heads(const BenchCase& c) {
  return static_cast<double>(c.batch * c.heads * c.length);
}

void wait_for_device(const at::Device& device) {
  if (device.is_cuda()) torch::cuda::synchronize();
}

struct Inputs {
  at::Tensor q, k, v, dout, log_decay;
};

Inputs make_inputs(const BenchCase& c, bool gradients) {
  const at::Device device(c.device);
  const auto options = at::TensorOptions().dtype(ops::scalar_type_of(c.dtype)).device(device);
  torch::manual_seed(static_cast<std::uint64_t>(c.length * 131 + c.dim));
  const auto draw = [&] {
    return at::randn({c.batch, c.length, c.heads, c.dim}, at::TensorOptions().dtype(at::kFloat)).to(options);
  };
  Inputs x{draw(), draw(), draw(), draw(), {}};
  if (c.decay) x.log_decay = at::linspace(-0.2, -0.002, c.heads, at::kFloat).to(device);
  if (!gradients) return x;
  for (at::Tensor* tensor : {&x.q, &x.k, &x.v}) tensor->requires_grad_();
  if (c.decay) x.log_decay.requires_grad_();
  return x;
}

at::Tensor forward(const BenchCase& c, const Inputs& x) {
  if (c.impl == "softmax") {
    return ops::softmax_attention(x.q.transpose(1, 2), x.k.transpose(1, 2), x.v.transpose(1, 2), c.causal)
        .transpose(1, 2);
  }
  AttentionOptions options;
  options.causal = c.causal;
  options.log_decay = x.log_decay;
  return attention(x.q, x.k, x.v, options);
}

struct Outputs {
  at::Tensor out;
  std::vector<at::Tensor> gradients;
};

Outputs run_once(const BenchCase& c, const Inputs& x) {
  if (c.pass == "fwd") {
    torch::NoGradGuard no_grad;
    return {forward(c, x), {}};
  }
  const at::Tensor out = forward(c, x);
  std::vector<at::Tensor> inputs{x.q, x.k, x.v};
  if (c.decay && c.impl != "softmax") inputs.push_back(x.log_decay);
  return {out, torch::autograd::grad({out}, inputs, {x.dout})};
}

// Runs that would not end or not fit are not started.
std::string why_skip(const BenchCase& c, const Effort& effort) {
  const auto n = static_cast<double>(c.length);
  const bool on_gpu = c.device != "cpu";
  if (c.impl == "softmax" && (!ops::kHasFusedSoftmax)) {
    const double bytes = static_cast<double>(c.batch * c.heads) * n * n *
                         static_cast<double>(kernels::size_of(c.dtype)) * (c.pass == "fwd" ? 2 : 4);
    if (bytes > 8e9) return fmt::format("needs {} for its N×N matrices", human_bytes(bytes));
  }
  if (c.pass == "decode" && c.impl != "chunked") return "has no decode step";
  if (on_gpu && (c.impl == "quadratic" || c.impl == "recurrent")) return "a reference form, on the CPU only";
  if (on_gpu || c.impl == "chunked") return "";
  const double gflops = c.impl == "softmax" ? 30.0 : 1.0;  // per thread, a low guess
  const double seconds = useful_flops(c) * token_heads(c) / (gflops * 1e9 * c.threads);
  if (seconds > effort.most_seconds) return fmt::format("would take about {} s a run", significant(seconds, 2));
  return "";
}

const kernels::AttentionKernels& kernels_of(const BenchCase& c) {
  if (c.impl == "quadratic") return kernels::reference::quadratic_kernels();
  if (c.impl == "recurrent") return kernels::reference::recurrent_kernels();
  return kernels::cpu::chosen_kernels();
}

std::vector<double> first_head(const at::Tensor& x) {
  const at::Tensor dense = x.detach().select(0, 0).select(1, 0).to(at::kCPU).to(at::kDouble).contiguous();
  return {dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel()};
}

// One head against the recurrent form in double (the definition itself up to 512 tokens).
void compare_with_oracle(const BenchCase& c, const Inputs& x, const Outputs& y, BenchResult& result) {
  using namespace kernels::verify;
  AttentionCase head;
  head.dtype = c.dtype;
  head.dim = head.value_dim = c.dim;
  head.q_lengths = head.k_lengths = {c.length};
  head.causal = c.causal;
  head.decay = c.decay;
  CaseData data;
  data.q = first_head(x.q);
  data.k = first_head(x.k);
  data.v = first_head(x.v);
  data.dout = first_head(x.dout);
  if (c.decay) data.log_decay = {x.log_decay.detach()[0].item<double>()};
  data.sequences = {{.q_length = c.length,
                     .k_length = c.length,
                     .theta = std::numbers::pi / (2.0 * static_cast<double>(c.length)),
                     .period = 4 * c.length}};
  const Yardstick yardstick = c.length <= 512 ? make_yardstick(head, data) : make_long_yardstick(head, data);
  CaseResult computed = yardstick.exact;  // parts that this run did not compute count as right
  computed.out = first_head(y.out);
  if (!y.gradients.empty()) {
    computed.dq = first_head(y.gradients[0]);
    computed.dk = first_head(y.gradients[1]);
    computed.dv = first_head(y.gradients[2]);
  }
  double worst = -1;
  for (const PartError& part : compare(head, yardstick, computed)) {
    const bool ran = std::string(part.name) == "out" || (!y.gradients.empty() && std::string(part.name) != "d_decay");
    if (!ran || !(part.error / part.bound > worst || std::isnan(part.error))) continue;
    worst = part.error / part.bound;
    result.max_error = part.error;
    result.error_bound = part.bound;
  }
}

void compare_softmax(const BenchCase& c, const Inputs& x, const Outputs& y, BenchResult& result) {
  const auto head = [](const at::Tensor& t) {
    return t.detach().select(0, 0).select(1, 0).to(at::kCPU).to(at::kDouble);
  };
  const SoftmaxError e = softmax_error(head(x.q), head(x.k), head(x.v), head(y.out), c.causal, c.dtype);
  result.max_error = e.error;
  result.error_bound = e.bound;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

Roof measure_roof(const std::string& device, int threads) {
  Roof roof;
  if (device == "cpu") {
    threads = std::min(threads, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
    std::vector<double> float32(static_cast<std::size_t>(threads)), bf16(static_cast<std::size_t>(threads));
    const auto on_all = [threads](auto work) {
      std::vector<std::thread> workers;
      for (int at = 0; at < threads; ++at) workers.emplace_back(work, static_cast<std::size_t>(at));
      for (std::thread& worker : workers) worker.join();
    };
    on_all([&](std::size_t at) { float32[at] = kernels::cpu::measure_fma_gflops(0.2); });
    on_all([&](std::size_t at) { bf16[at] = kernels::cpu::measure_bf16_gflops(0.2); });
    for (const double rate : float32) roof.gflops_float32 += rate;
    for (const double rate : bf16) roof.gflops_bf16 += rate;
    return roof;
  }
  const auto options = at::TensorOptions().dtype(at::kByte).device(at::Device(device));
  const at::Tensor from = at::zeros({1LL << 30}, options), to = at::empty_like(from);
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    torch::cuda::synchronize();
    const auto start = Clock::now();
    for (int at = 0; at < 10; ++at) to.copy_(from);
    torch::cuda::synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 10 * 2.0 * static_cast<double>(from.numel()) / seconds / 1e9);
  }
  roof.copy_gb_per_s = best;
  return roof;
}

Measurement prepare(const BenchCase& c, const Effort& effort) {
  Measurement m;
  m.c = c;
  m.result.skipped = why_skip(c, effort);
  if (!m.result.skipped.empty()) return m;
  at::set_num_threads(c.threads);
  const ops::UseCpuKernels use(kernels_of(c));
  if (c.pass == "decode") return prepare_decode(c);
  const Inputs x = make_inputs(c, c.pass != "fwd");
  const AllocationPeak peak{at::Device(c.device)};
  const Outputs y = run_once(c, x);  // also the warm-up
  wait_for_device(at::Device(c.device));
  m.result.peak_bytes = peak.bytes();
  if (c.impl == "softmax") {
    compare_softmax(c, x, y, m.result);
  } else {
    compare_with_oracle(c, x, y, m.result);
  }
  m.once = [c, x] { run_once(c, x); };
  return m;
}

void repeat(Measurement& m, double seconds) {
  if (!m.once) return;
  at::set_num_threads(m.c.threads);
  const ops::UseCpuKernels use(kernels_of(m.c));
  const at::Device device(m.c.device);
  const auto time = [&device](const std::function<void()>& run, int times) {
    wait_for_device(device);
    const auto start = Clock::now();
    for (int at = 0; at < times; ++at) run();
    wait_for_device(device);
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count() / times;
  };
  const double first = time(m.once, 1);
  const int together = device.is_cuda() ? std::clamp(static_cast<int>(5.0 / first), 1, 20) : 1;
  const int repeats = std::clamp(static_cast<int>(seconds * 1e3 / (first * together)), 3, 200);
  for (int at = 0; at < repeats; ++at) {
    m.times_ms.push_back(time(m.once, together));
    if (m.copy) m.copy_times_ms.push_back(time(m.copy, 1));
  }
}

BenchResult finish(const Measurement& m, const Roof& roof) {
  BenchResult result = m.result;
  if (!result.skipped.empty()) return result;
  const BenchCase& c = m.c;
  std::vector<double> times = m.times_ms;
  std::sort(times.begin(), times.end());
  result.median_ms = times[times.size() / 2];
  result.min_ms = times.front();
  result.p90_ms = times[std::min(times.size() - 1, times.size() * 9 / 10)];
  const double seconds = result.median_ms * 1e-3;
  result.tokens_per_s = static_cast<double>(c.batch * c.length) / seconds;
  if (!m.copy_times_ms.empty()) {
    const double share = m.moved_bytes / m.copied_bytes;
    const double fastest_copy = *std::min_element(m.copy_times_ms.begin(), m.copy_times_ms.end());
    result.roof_fraction = share * median_of(m.copy_times_ms) / result.median_ms;
    result.best_fraction = share * fastest_copy / result.min_ms;
    return result;
  }
  if (roof.copy_gb_per_s > 0) {
    const double bytes = m.moved_bytes > 0 ? m.moved_bytes : useful_bytes(c) * token_heads(c);
    result.roof_fraction = bytes / seconds / (roof.copy_gb_per_s * 1e9);
  } else {
    const bool bf16 = c.dtype == DType::kBFloat16 && roof.gflops_bf16 > 0 && c.impl == "chunked";
    const double float_gflops = c.dtype == DType::kFloat64 ? roof.gflops_float32 / 2 : roof.gflops_float32;
    const double gflops = bf16 ? roof.gflops_bf16 : float_gflops;
    result.roof_fraction = useful_flops(c) * token_heads(c) / seconds / (gflops * 1e9);
  }
  result.best_fraction = result.roof_fraction * result.median_ms / result.min_ms;
  return result;
}

}  // namespace cosformer::cli
