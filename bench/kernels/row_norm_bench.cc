#include "row_norm_bench.h"

#include <cstdio>
#include <random>
#include <vector>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/norm/row_norm.h"
#include "timing.h"

namespace cosformer::kernels::cuda::testing {
namespace {

// A tensor of each kind; there are several of them, together larger than the device's cache.
struct Tensors {
  Tensors(const std::vector<float>& values, const std::vector<BFloat16>& gradients)
      : x(values), y(gradients.size() * 2), dy(gradients), dx(values.size() * 4) {}
  DeviceMemory x, y, dy, dx;
};
constexpr int kSets = 8;

void bench_shape(std::int64_t rows, std::int64_t width, bool centered, double rate) {
  const auto count = static_cast<std::size_t>(rows * width);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  std::vector<BFloat16> gradients(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = normal(random);
    gradients[i] = to_bfloat16(values[i]);
  }
  std::vector<Tensors> sets;
  for (int i = 0; i < kSets; ++i) sets.emplace_back(values, gradients);
  const DeviceMemory weight(std::vector<float>(static_cast<std::size_t>(width), 1.0F)),
      bias(std::vector<float>(static_cast<std::size_t>(width), 0.5F));
  RowNorm p;
  p.y_dtype = DType::kBFloat16;
  p.rows = rows;
  p.width = width;
  p.eps = 1e-6F;
  p.centered = centered;
  p.weight = weight.data<float>();
  const DeviceMemory workspace(static_cast<std::size_t>(row_norm_workspace_floats(p)) * sizeof(float)),
      dweight(static_cast<std::size_t>(width) * sizeof(float)), dbias(dweight.bytes());
  const auto forward = [&](cudaStream_t stream) {
    for (const Tensors& t : sets) {
      p.x = t.x.data();
      check(row_norm_fwd(p, centered ? bias.data<float>() : nullptr, t.y.data(), stream), "row_norm_fwd");
    }
  };
  const auto backward = [&](cudaStream_t stream) {
    for (const Tensors& t : sets) {
      p.x = t.x.data();
      check(row_norm_bwd(p, t.dy.data(), t.dx.data(), dweight.data<float>(), dbias.data<float>(),
                         workspace.data<float>(), stream),
            "row_norm_bwd");
    }
  };
  const double fwd = median_ms(forward, 21) / kSets, bwd = median_ms(backward, 21) / kSets;
  const double numbers = static_cast<double>(count);
  std::printf(
      "{\"shape\": \"%s-norm-%lldx%lld\", \"fwd_us\": %.1f, \"bwd_us\": %.1f, \"fwd_copy_fraction\": %.3f, "
      "\"bwd_copy_fraction\": %.3f}\n",
      centered ? "layer" : "rms", static_cast<long long>(rows), static_cast<long long>(width), fwd * 1e3, bwd * 1e3,
      numbers * (4 + 2) / rate / fwd, numbers * (4 + 2 + 4) / rate / bwd);
  std::fflush(stdout);
}

}  // namespace

void bench_row_norms(double rate) {
  for (const bool centered : {true, false}) {
    bench_shape(61'440, 128, centered, rate);
    bench_shape(32'768, 512, centered, rate);
  }
}

}  // namespace cosformer::kernels::cuda::testing
