#include "kernels/cuda/instructions.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/plan/slot_scan.cuh"
#include "kernels/cuda/plan/states.h"

namespace cosformer::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct StateKernelParams {
  SweepParams sweep;
  const float* kv;
  const float* z;
  float* kv_out;
  float* z_out;
  bool gradient;
  bool total;
  float* after;
};

__device__ int frame_length_of(const SweepParams& p, const SequenceExtent& extent) {
  // Sums of columns alone: keys for the forward's state, queries for its gradient; the caller swaps the lengths.
  return p.frame == Frame::kBoth ? max(extent.q_length, extent.k_length) : extent.k_length;
}

// The two parts of element e of a slot, kv first and then z.
struct Pair {
  std::int64_t cosine, sine;
};
__device__ Pair pair_of(const SweepParams& p, std::int64_t element) {
  const std::int64_t matrix = static_cast<std::int64_t>(p.dim) * p.value_dim;
  if (element < matrix) return {element, element + matrix};
  return {matrix + element, matrix + element + p.dim};
}

struct Carried {
  const float *cosine, *sine;
};
__device__ Carried carried_pair(const SweepParams& p, const float* kv, const float* z, std::int64_t head_index,
                                std::int64_t element) {
  const std::int64_t matrix = static_cast<std::int64_t>(p.dim) * p.value_dim;
  if (element < matrix) {
    const float* base = kv + head_index * 2 * matrix + element;
    return {base, base + matrix};
  }
  const float* base = z + head_index * 2 * p.dim + (element - matrix);
  return {base, base + p.dim};
}

// Numbers of a slot, kv and then z, are in the order of the carried tensors: Piece, one or four of them to a thread.
template <class Piece>
__global__ void __launch_bounds__(kThreads) state_scan_kernel(const __grid_constant__ StateKernelParams params) {
  const SweepParams& p = params.sweep;
  constexpr int kFloats = sizeof(Piece) / sizeof(float);
  const std::int64_t head_index = blockIdx.x;
  const std::int64_t sequence = head_index / p.heads;
  const int of_kv = 2 * p.dim * p.value_dim, of_z = 2 * p.dim;
  const int size = (of_kv + of_z) / kFloats;
  const int element = static_cast<int>(blockIdx.y) * kThreads + static_cast<int>(threadIdx.x);
  if (element >= size) return;
  const bool backwards = blockIdx.z == 1;  // the sums after segments, last segment first
  const SlotScan scan(p, head_index, frame_length_of(p, extent_of(p, sequence)), backwards, params.total);
  Piece sums[1] = {};
  if (params.kv != nullptr) {
    const float factor = params.gradient ? decay_of(scan.log_decay, -1.0F) : 1.0F;
    const int at = element * kFloats;
    const float* from = at < of_kv ? params.kv + head_index * of_kv + at : params.z + head_index * of_z + (at - of_kv);
    sums[0] = multiply_add(factor, *reinterpret_cast<const Piece*>(from), Piece{});
  }
  scan.run(backwards ? params.after : p.states, size, {element}, sums);
}

__global__ void __launch_bounds__(kThreads) state_export_kernel(const __grid_constant__ StateKernelParams params) {
  const SweepParams& p = params.sweep;
  const std::int64_t head_index = blockIdx.x;
  const int head = static_cast<int>(head_index % p.heads);
  const std::int64_t pairs = static_cast<std::int64_t>(p.dim) * (p.value_dim + 1);
  const std::int64_t element = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  if (element >= pairs) return;
  const float factor = params.gradient && p.log_decay != nullptr ? decay_of(p.log_decay[head], 1.0F) : 1.0F;
  const Pair at = pair_of(p, element);
  const float* slot = p.states + (head_index * p.slots + p.total_slot) * 2 * pairs;
  const Carried to = carried_pair(p, params.kv_out, params.z_out, head_index, element);
  *const_cast<float*>(to.cosine) = factor * slot[at.cosine];
  *const_cast<float*>(to.sine) = factor * slot[at.sine];
}

__device__ double block_sum(double x) {
  using Sums = double[kThreads];
  COSFORMER_SHARED(Sums, sums);
  sums[threadIdx.x] = x;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

struct DecayKernelParams {
  SweepParams sweep;
  DecayParams decay;
};

// (T − 1)·<S_out, dS_out> + <S_in, dS_in>: the state as one more key at −1, its gradient as one more query at T − 1.
__global__ void __launch_bounds__(kThreads) decay_state_kernel(const __grid_constant__ DecayKernelParams params) {
  const SweepParams& p = params.sweep;
  const DecayParams& d = params.decay;
  const std::int64_t head_index = blockIdx.x;
  const std::int64_t sequence = head_index / p.heads;
  const int head = static_cast<int>(head_index % p.heads);
  const std::int64_t pairs = static_cast<std::int64_t>(p.dim) * (p.value_dim + 1);
  const SequenceExtent extent = extent_of(p, sequence);
  const float log_decay = p.log_decay == nullptr ? 0.0F : p.log_decay[head];
  const int length = frame_length_of(p, extent);
  const double back = decay_of(log_decay, 1.0F);
  const std::int64_t slot = (head_index * p.slots + p.total_slot) * 2 * pairs;
  double sum = 0.0;
  // Without a token the state passes unchanged, whatever the decay.
  for (std::int64_t element = threadIdx.x; length > 0 && element < pairs; element += kThreads) {
    const Pair at = pair_of(p, element);
    if (d.d_kv_out != nullptr) {
      const Carried other = carried_pair(p, d.d_kv_out, d.d_z_out, head_index, element);
      sum += (length - 1.0) * (static_cast<double>(d.final_states[slot + at.cosine]) * *other.cosine +
                               static_cast<double>(d.final_states[slot + at.sine]) * *other.sine);
    }
    if (d.kv_in != nullptr) {
      const Carried other = carried_pair(p, d.kv_in, d.z_in, head_index, element);
      sum += back * (static_cast<double>(d.gradient_states[slot + at.cosine]) * *other.cosine +
                     static_cast<double>(d.gradient_states[slot + at.sine]) * *other.sine);
    }
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) d.state_terms[head_index] = sum;
}

__device__ double sum_parts(const double* parts, std::int64_t rows, int heads, int slices, int head) {
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < rows * slices; i += kThreads) {
    sum += parts[(i / slices * heads + head) * slices + i % slices];
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads) decay_sum_kernel(const __grid_constant__ DecayKernelParams params) {
  const SweepParams& p = params.sweep;
  const DecayParams& d = params.decay;
  const int head = blockIdx.x;
  double sum = sum_parts(d.query_parts, d.sweeps * p.sequences * d.query_segments, p.heads, d.query_slices, head) +
               sum_parts(d.key_parts, d.sweeps * p.sequences * d.key_segments, p.heads, d.key_slices, head);
  if (d.state_terms != nullptr) sum += sum_parts(d.state_terms, p.sequences, p.heads, 1, head);
  sum = block_sum(sum);
  if (threadIdx.x == 0) d.result[head] = sum;
}

StateKernelParams kernel_params(const StateParams& params) {
  return {*params.sweep, params.kv, params.z, params.kv_out, params.z_out, params.gradient, params.total, params.after};
}

dim3 pair_grid(const SweepParams& p) {
  const std::int64_t pairs = static_cast<std::int64_t>(p.dim) * (p.value_dim + 1);
  return dim3(static_cast<unsigned>(p.sequences * p.heads), static_cast<unsigned>((pairs + kThreads - 1) / kThreads));
}

}  // namespace

cudaError_t launch_state_scan(const StateParams& params, cudaStream_t stream) {
  const SweepParams& p = *params.sweep;
  const std::int64_t floats = 2LL * p.dim * (p.value_dim + 1);
  const auto grid = [&](std::int64_t pieces) {
    return dim3(static_cast<unsigned>(p.sequences * p.heads), static_cast<unsigned>((pieces + kThreads - 1) / kThreads),
                params.after == nullptr ? 1 : 2);
  };
  const auto aligned = [](const float* data) { return reinterpret_cast<std::uintptr_t>(data) % sizeof(float4) == 0; };
  // An even dim: whole pieces in kv, in z and in a slot.
  if (p.dim % 2 == 0 && aligned(params.kv) && aligned(params.z) && aligned(p.states)) {
    return launch_kernel(state_scan_kernel<float4>, grid(floats / 4), kThreads, stream, kernel_params(params));
  }
  return launch_kernel(state_scan_kernel<float>, grid(floats), kThreads, stream, kernel_params(params));
}

cudaError_t launch_state_export(const StateParams& params, cudaStream_t stream) {
  return launch_kernel(state_export_kernel, pair_grid(*params.sweep), kThreads, stream, kernel_params(params));
}

cudaError_t launch_decay_gradient(const DecayParams& params, cudaStream_t stream) {
  const DecayKernelParams kernel{*params.sweep, params};
  const SweepParams& p = *params.sweep;
  if (params.state_terms != nullptr) {
    const cudaError_t status =
        launch_kernel(decay_state_kernel, static_cast<unsigned>(p.sequences * p.heads), kThreads, stream, kernel);
    if (status != cudaSuccess) return status;
  }
  return launch_kernel(decay_sum_kernel, static_cast<unsigned>(p.heads), kThreads, stream, kernel);
}

}  // namespace cosformer::kernels::cuda
