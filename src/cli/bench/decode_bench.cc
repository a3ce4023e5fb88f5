#include "cli/bench/decode_bench.h"

#include <cmath>
#include <cstring>
#include <numbers>
#include <thread>

#include <ATen/Parallel.h>
#include <torch/cuda.h>
#include <torch/torch.h>

#include "cli/memory/allocation_peak.h"
#include "cosformer/attention.h"
#include "kernels/verify/run_case.h"
#include "ops/arguments.h"
#include "ops/operator_case.h"

namespace cosformer::cli {
namespace {

constexpr std::int64_t kPosition = 4096, kHorizon = 1 << 20;

struct Step {
  at::Tensor q, k, v;
  AttentionState state;
  StreamOptions options;
};

Step make_step(const BenchCase& c) {
  const at::Device device(c.device);
  const at::ScalarType type = ops::scalar_type_of(c.dtype);
  const auto inputs = at::TensorOptions().dtype(type).device(device);
  const auto numbers = at::TensorOptions().dtype(ops::accumulation_type(type)).device(device);
  torch::manual_seed(static_cast<std::uint64_t>(c.length * 131 + c.dim));
  const auto draw = [](at::IntArrayRef shape, const at::TensorOptions& options) {
    return at::randn(shape, at::TensorOptions().dtype(at::kFloat)).to(options);
  };
  Step step;
  for (at::Tensor* x : {&step.q, &step.k, &step.v}) *x = draw({c.batch, c.length, c.heads, c.dim}, inputs);
  step.state.kv = draw({c.batch, c.heads, 2, c.dim, c.dim}, numbers);
  step.state.z = draw({c.batch, c.heads, 2, c.dim}, numbers).abs() + 1;
  step.state.position = at::full({c.batch}, kPosition, at::TensorOptions().dtype(at::kLong).device(device));
  step.options.horizon = kHorizon;
  if (c.decay) step.options.log_decay = at::linspace(-0.2, -0.002, c.heads, at::kFloat).to(device);
  return step;
}

std::vector<double> numbers_of(const at::Tensor& x) {
  const at::Tensor dense = x.to(at::kCPU).to(at::kDouble).contiguous();
  return {dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel()};
}

// The first head of the first sequence against the definition.
void compare_first_head(const BenchCase& c, const Step& before, const at::Tensor& out, const AttentionState& after,
                        BenchResult& result) {
  using namespace kernels::verify;
  const auto tokens = [](const at::Tensor& x) { return numbers_of(x.select(0, 0).select(1, 0)); };
  const auto state = [](const at::Tensor& x) { return numbers_of(x.select(0, 0).select(0, 0)); };
  AttentionCase head;
  head.dtype = c.dtype;
  head.dim = head.value_dim = c.dim;
  head.q_lengths = head.k_lengths = {c.length};
  head.carry_state = true;
  head.position = kPosition;
  head.decay = c.decay;
  CaseData data;
  data.q = tokens(before.q);
  data.k = tokens(before.k);
  data.v = tokens(before.v);
  data.dout.assign(data.v.size(), 0);
  data.state_kv = state(before.state.kv);
  data.state_z = state(before.state.z);
  data.d_state_kv.assign(data.state_kv.size(), 0);
  data.d_state_z.assign(data.state_z.size(), 0);
  if (c.decay) data.log_decay = {before.options.log_decay[0].item<double>()};
  data.sequences = {{.q_length = c.length,
                     .k_length = c.length,
                     .position = kPosition,
                     .theta = std::numbers::pi / (2.0 * kHorizon),
                     .period = 4 * kHorizon}};
  const Yardstick yardstick = make_yardstick(head, data);
  CaseResult computed = yardstick.exact;  // gradients were not asked for
  computed.out = tokens(out);
  computed.state_kv = state(after.kv);
  computed.state_z = state(after.z);
  double worst = -1;
  for (const PartError& part : compare(head, yardstick, computed)) {
    const std::string name = part.name;
    if (name != "out" && name != "state_kv" && name != "state_z") continue;
    if (!(part.error / part.bound > worst) && !std::isnan(part.error)) continue;
    worst = part.error / part.bound;
    result.max_error = part.error;
    result.error_bound = part.bound;
  }
}

// to = from, in equal parts on some threads.
void copy_on_threads(const at::Tensor& from, const at::Tensor& to, int threads) {
  const auto bytes = static_cast<std::size_t>(from.nbytes());
  const auto part = [&](int at) { return bytes * static_cast<std::size_t>(at) / static_cast<std::size_t>(threads); };
  const auto copy = [&](int at) {
    std::memcpy(static_cast<char*>(to.data_ptr()) + part(at), static_cast<const char*>(from.data_ptr()) + part(at),
                part(at + 1) - part(at));
  };
  std::vector<std::thread> workers;
  for (int at = 1; at < threads; ++at) workers.emplace_back(copy, at);
  copy(0);
  for (std::thread& worker : workers) worker.join();
}

}  // namespace

Measurement prepare_decode(const BenchCase& c) {
  Measurement m;
  m.c = c;
  const Step step = make_step(c);
  const auto once = [step] {
    torch::NoGradGuard no_grad;
    AttentionState state = step.state;
    const at::Tensor out = attention_with_state(step.q, step.k, step.v, state, step.options);
    return std::pair(out, state);
  };
  const AllocationPeak peak{at::Device(c.device)};
  const auto [out, state] = once();
  if (c.device != "cpu") torch::cuda::synchronize();
  m.result.peak_bytes = peak.bytes();
  compare_first_head(c, step, out, state, m.result);
  m.once = [once] { once(); };
  m.moved_bytes = 2.0 * static_cast<double>(step.state.kv.nbytes() + step.state.z.nbytes());
  if (c.device != "cpu") return m;
  const at::Tensor from = step.state.kv, to = at::zeros_like(from);
  m.copy = [from, to, threads = c.threads] { copy_on_threads(from, to, threads); };
  m.copied_bytes = 2.0 * static_cast<double>(from.nbytes());
  return m;
}

}  // namespace cosformer::cli
