// Times of the CUDA kernels beside their errors and a copy on the same device.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device_memory.h"
#include "row_norm_bench.h"
#include "row_oracle.h"
#include "timing.h"

namespace cosformer::kernels::cuda::testing {
namespace {

__device__ std::uint32_t mix(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return static_cast<std::uint32_t>(x >> 32);
}

template <class T>
__global__ void fill_normal(T* data, std::int64_t count, std::uint64_t seed) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count; i += stride) {
    const float u = (static_cast<float>(mix(seed + 2 * i)) + 0.5F) * 0x1p-32F;
    const float w = static_cast<float>(mix(seed + 2 * i + 1)) * 0x1p-32F;
    data[i] = static_cast<T>(sqrtf(-2.0F * logf(u)) * cospif(2.0F * w));
  }
}

constexpr DType kBf16 = DType::kBFloat16, kFp16 = DType::kFloat16, kFp32 = DType::kFloat32;
const Shape kShapes[] = {
    {"causal-64-1k", kBf16, 64, 1024, 16, 64, true, false, false},
    {"causal-64-4k", kBf16, 16, 4096, 16, 64, true, false, false},
    {"causal-64-16k", kBf16, 4, 16384, 16, 64, true, false, false},
    {"causal-64-64k", kBf16, 1, 65536, 16, 64, true, false, false},
    {"causal-decay-64-1k", kBf16, 64, 1024, 16, 64, true, true, false},
    {"causal-decay-64-64k", kBf16, 1, 65536, 16, 64, true, true, false},
    {"full-64-1k", kBf16, 64, 1024, 16, 64, false, false, false},
    {"full-64-64k", kBf16, 1, 65536, 16, 64, false, false, false},
    {"full-decay-64-1k", kBf16, 64, 1024, 16, 64, false, true, false},
    {"full-decay-64-4k", kBf16, 16, 4096, 16, 64, false, true, false},
    {"full-decay-64-16k", kBf16, 4, 16384, 16, 64, false, true, false},
    {"full-decay-64-64k", kBf16, 1, 65536, 16, 64, false, true, false},
    {"causal-128-1k", kBf16, 64, 1024, 8, 128, true, false, false},
    {"causal-128-4k", kBf16, 16, 4096, 8, 128, true, false, false},
    {"causal-128-16k", kBf16, 4, 16384, 8, 128, true, false, false},
    {"causal-128-64k", kBf16, 1, 65536, 8, 128, true, false, false},
    {"causal-decay-128-4k", kBf16, 16, 4096, 8, 128, true, true, false},
    {"causal-decay-128-64k", kBf16, 1, 65536, 8, 128, true, true, false},
    {"few-64-4k", kBf16, 32, 4096, 8, 64, true, false, false},
    {"few-64-128k", kBf16, 1, 131072, 8, 64, true, false, false},
    {"fp16-causal-64-4k", kFp16, 16, 4096, 16, 64, true, false, false},
    {"fp16-causal-decay-64-4k", kFp16, 16, 4096, 16, 64, true, true, false},
    {"fp16-full-64-4k", kFp16, 16, 4096, 16, 64, false, false, false},
    {"fp16-causal-128-4k", kFp16, 16, 4096, 8, 128, true, false, false},
    {"fp32-causal-64-4k", kFp32, 16, 4096, 16, 64, true, false, false},
    {"fp32-full-64-4k", kFp32, 16, 4096, 16, 64, false, false, false},
    {"full-decay-128-4k", kBf16, 16, 4096, 8, 128, false, true, false},
    {"causal-256-4k", kBf16, 16, 4096, 4, 256, true, false, false},
    {"causal-256-64k", kBf16, 1, 65536, 4, 256, true, false, false},
    {"causal-decay-256-4k", kBf16, 16, 4096, 4, 256, true, true, false},
    {"full-256-4k", kBf16, 16, 4096, 4, 256, false, false, false},
    {"packed-64-4k", kBf16, 16, 4096, 16, 64, true, false, true},
};

DeviceMemory random_tensor(DType dtype, std::int64_t count, std::uint64_t seed) {
  DeviceMemory memory(static_cast<std::size_t>(count) * size_of(dtype));
  if (dtype == DType::kBFloat16) fill_normal<<<1024, 256>>>(memory.data<__nv_bfloat16>(), count, seed);
  if (dtype == DType::kFloat16) fill_normal<<<1024, 256>>>(memory.data<__half>(), count, seed);
  if (dtype == DType::kFloat32) fill_normal<<<1024, 256>>>(memory.data<float>(), count, seed);
  check(cudaGetLastError(), "fill_normal");
  return memory;
}

// `rate`: of a copy. Without one every pass runs once, untimed, for a profiler.
void bench_shape(const Shape& s, std::optional<double> rate) {
  const std::int64_t count = s.batch * s.length * s.heads * s.dim;
  const DeviceMemory q = random_tensor(s.dtype, count, 1), k = random_tensor(s.dtype, count, 1ULL << 40),
                     v = random_tensor(s.dtype, count, 2ULL << 40), dout = random_tensor(s.dtype, count, 3ULL << 40);
  const std::size_t bytes = static_cast<std::size_t>(count) * size_of(s.dtype);
  const DeviceMemory out(bytes), dq(bytes), dk(bytes), dv(bytes);
  const DeviceMemory denominators(static_cast<std::size_t>(s.batch * s.length * s.heads) * sizeof(float));
  std::vector<float> log_decay;
  for (std::int64_t h = 0; h < s.heads; ++h) log_decay.push_back(-1.0F / (3.0F + 45.0F * static_cast<float>(h)));
  const DeviceMemory decay_memory(log_decay), decay_gradient(static_cast<std::size_t>(s.heads) * sizeof(double));
  std::vector<std::int32_t> cu;
  for (std::int64_t b = 0; b <= s.batch; ++b) cu.push_back(static_cast<std::int32_t>(b * s.length));
  const DeviceMemory cu_memory(cu);

  const std::int64_t row = s.heads * s.dim;
  const auto view = [&](const DeviceMemory& memory) { return View{memory.data(), s.length * row, row, s.dim}; };
  const auto const_view = [&](const DeviceMemory& memory) {
    return ConstView{memory.data(), s.length * row, row, s.dim};
  };
  Problem p;
  p.dtype = s.dtype;
  p.heads = s.heads;
  p.dim = p.value_dim = s.dim;
  p.causal = s.causal;
  p.sequences = s.batch;
  p.q_length = p.k_length = s.length;
  p.theta = 1.57079632679489661923 / static_cast<double>(s.length);
  if (s.packed) {
    p.cu_seqlens_q = p.cu_seqlens_k = cu_memory.data<std::int32_t>();
    p.total_q = s.batch * s.length;
    p.theta_from_length = true;
  }
  if (s.decay) p.log_decay = decay_memory.data<float>();
  p.q = const_view(q);
  p.k = const_view(k);
  p.v = const_view(v);
  p.out = view(out);
  // Each head's by themselves, as the operator has them.
  p.denominator = {denominators.data(), s.length * s.heads, 1, s.packed ? s.batch * s.length : s.length};
  Gradients g;
  g.dout = const_view(dout);
  g.dq = view(dq);
  g.dk = view(dk);
  g.dv = view(dv);
  if (s.decay) g.d_log_decay = decay_gradient.data<double>();
  const Device device = this_device();
  const Choice alone_choice = choose(p, nullptr, device);
  p.keep_key_sums = KeepSums::kAlways;
  const Choice fwd_choice = choose(p, nullptr, device), bwd_choice = choose(p, &g, device);
  const DeviceMemory key_sums(static_cast<std::size_t>(fwd_choice.key_sum_floats) * sizeof(float));
  p.key_sums = key_sums.data<float>();
  const DeviceMemory fwd_space(fwd_choice.workspace.bytes), bwd_space(bwd_choice.workspace.bytes);
  const auto forward = [&](cudaStream_t stream) {
    check(attention_fwd(p, fwd_choice, fwd_space.data(), fwd_space.bytes(), stream), "attention_fwd");
  };
  const auto backward = [&](cudaStream_t stream) {
    check(attention_bwd(p, g, bwd_choice, bwd_space.data(), bwd_space.bytes(), stream), "attention_bwd");
  };
  if (!rate) {
    forward(nullptr);
    backward(nullptr);
    check(cudaDeviceSynchronize(), "both passes");
    return;
  }
  // By itself, then with what it leaves for the backward pass.
  const DeviceMemory alone_space(alone_choice.workspace.bytes);
  const double alone = median_ms(
      [&](cudaStream_t stream) {
        check(attention_fwd(p, alone_choice, alone_space.data(), alone_space.bytes(), stream), "attention_fwd");
      },
      21);
  const double fwd = median_ms(forward, 21), bwd = median_ms(backward, 21);
  const double both = median_ms(
      [&](cudaStream_t stream) {
        forward(stream);
        backward(stream);
      },
      21);

  const std::int64_t batch = s.batch - 1, head = s.heads - 1;
  const Head hq(s, q, batch, head), hk(s, k, batch, head), hv(s, v, batch, head), hdout(s, dout, batch, head);
  const Head ho(s, out, batch, head), hdq(s, dq, batch, head), hdk(s, dk, batch, head), hdv(s, dv, batch, head);
  const RowOracle oracle(s, p.theta, s.decay ? log_decay.back() : 0.0, hq, hk, hv, hdout);
  RelativeError e_out, e_dq, e_dk, e_dv;
  for (int n = 0; n < 8; ++n) {
    const std::int64_t i = (s.length - 1) * (n + 1) / 8 - n;
    e_out.add(oracle.out(i), ho.row(i));
    e_dq.add(oracle.query_gradient(i), hdq.row(i));
  }
  if (s.causal || s.length <= 1024) {  // by the definition, all of a longer one would take minutes
    for (int n = 0; n < 2; ++n) {
      const std::int64_t j = s.length - 20 - 30 * n;
      std::vector<double> exact_dk, exact_dv;
      oracle.key_gradients(j, exact_dk, exact_dv);
      e_dk.add(exact_dk, hdk.row(j));
      e_dv.add(exact_dv, hdv.row(j));
    }
  }
  const double tensors = static_cast<double>(bytes);
  std::printf(
      "{\"shape\": \"%s\", \"fwd_ms\": %.4f, \"fwd_for_bwd_ms\": %.4f, \"bwd_ms\": %.4f, \"fwd_bwd_ms\": %.4f, "
      "\"fwd_copy_fraction\": %.3f, "
      "\"fwd_bwd_copy_fraction\": %.3f, \"workspace_fraction\": %.4f, \"error_out\": %s, \"error_dq\": %s, "
      "\"error_dk\": %s, \"error_dv\": %s}\n",
      s.name, alone, fwd, bwd, both, 4 * tensors / *rate / alone, 12 * tensors / *rate / both,
      static_cast<double>(std::max(fwd_space.bytes(), bwd_space.bytes()) + key_sums.bytes()) / (8 * tensors),
      e_out.text().c_str(), e_dq.text().c_str(), e_dk.text().c_str(), e_dv.text().c_str());
  std::fflush(stdout);
}

// 1024 heads of 128 with a state each, which some calls fill: bytes are the state's, read and written, and the error is
// that of the last call's rows against the definition over all tokens.
void bench_decode(std::int64_t tokens, std::optional<double> rate) {
  constexpr std::int64_t kCalls = 8;
  const Shape s{"decode-128", kBf16, 64, kCalls * tokens, 16, 128, true, false, false};
  const std::int64_t count = s.batch * s.length * s.heads * s.dim;
  const DeviceMemory q = random_tensor(s.dtype, count, 1), k = random_tensor(s.dtype, count, 1ULL << 40),
                     v = random_tensor(s.dtype, count, 2ULL << 40);
  const DeviceMemory out(static_cast<std::size_t>(count) * size_of(s.dtype));
  const std::int64_t z_count = s.batch * s.heads * 2 * s.dim, kv_count = z_count * s.dim;
  const DeviceMemory kv(static_cast<std::size_t>(kv_count) * sizeof(float)),
      z(static_cast<std::size_t>(z_count) * sizeof(float));
  check(cudaMemset(kv.data(), 0, kv.bytes()), "cudaMemset");
  check(cudaMemset(z.data(), 0, z.bytes()), "cudaMemset");
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < kCalls * s.batch; ++i) positions.push_back(i / s.batch * tokens);
  const DeviceMemory position(positions);
  Problem p;
  p.dtype = s.dtype;
  p.heads = s.heads;
  p.dim = p.value_dim = s.dim;
  p.causal = true;
  p.sequences = s.batch;
  p.q_length = p.k_length = tokens;
  p.theta = 1e-4;
  p.state_kv_in = p.state_kv_out = kv.data<float>();
  p.state_z_in = p.state_z_out = z.data<float>();
  const std::int64_t row = s.heads * s.dim;
  for (std::int64_t call = 0; call < kCalls; ++call) {
    const auto from_token = [&](const DeviceMemory& memory) { return memory.data<BFloat16>() + call * tokens * row; };
    const auto view = [&](const DeviceMemory& m) { return ConstView{from_token(m), s.length * row, row, s.dim}; };
    p.q = view(q);
    p.k = view(k);
    p.v = view(v);
    p.out = {from_token(out), s.length * row, row, s.dim};
    p.position = position.data<std::int64_t>() + call * s.batch;
    check(launch_decode(p, nullptr), "launch_decode");
  }
  check(cudaDeviceSynchronize(), "launch_decode");
  if (!rate) return;
  RelativeError error;
  for (const std::int64_t head : {0, 5, 15}) {
    const std::int64_t batch = head * 4;
    const Head head_q(s, q, batch, head), head_k(s, k, batch, head), head_v(s, v, batch, head);
    const Head head_out(s, out, batch, head);
    const RowOracle oracle(s, p.theta, 0.0, head_q, head_k, head_v, head_v);
    for (std::int64_t i = s.length - tokens; i < s.length; ++i) error.add(oracle.out(i), head_out.row(i));
  }
  const double ms = median_ms([&](cudaStream_t stream) { check(launch_decode(p, stream), "launch_decode"); }, 31);
  const double bytes = 2.0 * sizeof(float) * static_cast<double>(kv_count + z_count);
  std::printf("{\"shape\": \"%s-%lld\", \"ms\": %.4f, \"copy_fraction\": %.3f, \"error_out\": %s}\n", s.name,
              static_cast<long long>(tokens), ms, bytes / *rate / ms, error.text().c_str());
}

// `is_timed`: shapes whose name contains the filter, one JSON line each; otherwise the passes of the one shape of that
// name run once, for a profiler.
int run(bool is_timed, const std::string& filter) {
  try {
    const std::optional<double> rate = is_timed ? std::optional<double>(copy_rate()) : std::nullopt;
    if (rate) std::printf("{\"copy_TB_per_s\": %.3f}\n", *rate * 1e-9);
    for (const Shape& shape : kShapes) {
      if (rate ? std::strstr(shape.name, filter.c_str()) != nullptr : shape.name == filter) bench_shape(shape, rate);
    }
    for (const std::int64_t tokens : {1, 4, 8}) {
      if (filter.empty() || filter == "decode") bench_decode(tokens, rate);
    }
    if (rate && (filter.empty() || filter == "norm")) bench_row_norms(*rate);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace cosformer::kernels::cuda::testing

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "", name = argc > 2 ? argv[2] : "";
  if (argc > 3 || (what != "bench" && what != "profile") || (what == "profile" && name.empty())) {
    std::fprintf(stderr, "usage: kernels_cuda_bench bench [PART OF A NAME] | profile NAME\n");
    return 2;
  }
  return cosformer::kernels::cuda::testing::run(what == "bench", name);
}
