#include "cli/bench/attention_choice.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cuda/choice.h"

namespace cosformer::cli {
namespace {

namespace cuda = kernels::cuda;

struct DescribedGpu {
  const char* name;
  cuda::Device device;
};
constexpr DescribedGpu kGpus[] = {
    {"h200", {}},
    {"h100", {}},
    {"a100", {.capability = 80, .multiprocessors = 108}},
};

const cuda::Device& device_of(const std::string& gpu) {
  const auto* found =
      std::find_if(std::begin(kGpus), std::end(kGpus), [&](const DescribedGpu& g) { return gpu == g.name; });
  if (found == std::end(kGpus))
    throw UserError(fmt::format("no description of a GPU '{}'; there are h200, h100 and a100", gpu));
  return found->device;
}

std::string in_capitals(std::string name) {
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

// Stands for memory that nobody reads: the choice looks at addresses alone.
alignas(16) std::array<float, 4> memory_of_nobody;

cuda::Problem problem_of(const BenchCase& c) {
  cuda::Problem p;
  p.dtype = c.dtype;
  p.heads = c.heads;
  p.dim = p.value_dim = c.dim;
  p.causal = c.causal;
  p.sequences = c.batch;
  p.q_length = p.k_length = c.length;
  const std::int64_t row = c.heads * c.dim;
  p.q = p.k = p.v = {memory_of_nobody.data(), c.length * row, row, c.dim};
  p.out = {memory_of_nobody.data(), c.length * row, row, c.dim};
  p.denominator = {memory_of_nobody.data(), c.length * c.heads, 1, c.length};
  if (c.decay) p.log_decay = memory_of_nobody.data();
  if (c.pass == "decode") {
    p.state_kv_in = p.state_z_in = memory_of_nobody.data();
    p.state_kv_out = p.state_z_out = memory_of_nobody.data();
  }
  if (c.pass == "fwd+bwd") p.keep_key_sums = cuda::KeepSums::kWhereWorthIt;
  return p;
}

}  // namespace

std::vector<std::string> described_gpus() {
  std::vector<std::string> names;
  for (const DescribedGpu& gpu : kGpus) names.emplace_back(gpu.name);
  return names;
}

std::string explain_choice(const BenchCase& c, const std::string& gpu) {
  const cuda::Device& device = device_of(gpu);
  cuda::Problem p = problem_of(c);
  const cuda::Choice forward = cuda::choose(p, nullptr, device);
  const char* title = c.pass == "decode" ? "new tokens on a carried state" : "forward";
  std::string text =
      fmt::format("{} on an {}\n{}", std::string(title), in_capitals(gpu), cuda::explain(p, nullptr, forward));
  if (c.pass != "fwd+bwd") return text;
  cuda::Gradients g;
  g.dout = p.q;
  g.dq = g.dk = g.dv = p.out;
  if (c.decay) g.d_log_decay = reinterpret_cast<double*>(memory_of_nobody.data());
  p.keep_key_sums = forward.key_sum_floats > 0 ? cuda::KeepSums::kAlways : cuda::KeepSums::kNever;
  return fmt::format("{}backward on an {}\n{}", text, in_capitals(gpu),
                     cuda::explain(p, &g, cuda::choose(p, &g, device)));
}

std::string chosen_kernels_in_short(const BenchCase& c, const std::string& gpu) {
  const cuda::Choice choice = cuda::choose(problem_of(c), nullptr, device_of(gpu));
  return fmt::format("{}, rows by {}, {}", std::string(cuda::name_of(choice.family)), cuda::name_of(choice.fetch),
                     cuda::name_of(choice.keys));
}

}  // namespace cosformer::cli
