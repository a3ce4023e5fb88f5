// What the kernels and their tests use of CUDA's runtime, for the emulated device.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct alignas(8) uint2 {
  unsigned x, y;
};
struct uint3 {
  unsigned x, y, z;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNotSupported = 801,
  cudaErrorLaunchFailure = 719,
};
const char* cudaGetErrorString(cudaError_t status);
cudaError_t cudaGetLastError();

struct EmulatedStream;
struct EmulatedGraph;
using cudaStream_t = EmulatedStream*;
using cudaGraph_t = EmulatedGraph*;
using cudaGraphExec_t = EmulatedGraph*;
constexpr unsigned cudaStreamNonBlocking = 1;
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal };
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMemset(void* memory, int byte, std::size_t bytes);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemsetAsync(void* memory, int byte, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream);

enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrComputeCapabilityMinor,
};
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);

#define CUDART_VERSION 13000
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound };
constexpr unsigned long long cudaEnableDefault = 0;
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* result);

enum cudaLaunchAttributeID { cudaLaunchAttributeCooperative };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int cooperative;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };

namespace emulated {
cudaError_t set_shared_limit(const void* kernel, int bytes);
int blocks_per_processor(int threads, std::size_t shared_bytes);
cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> call);
}  // namespace emulated

template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute /*attribute*/, int value) {
  return emulated::set_shared_limit(reinterpret_cast<const void*>(kernel), value);
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel* /*kernel*/, int threads,
                                                          std::size_t shared_bytes) {
  *blocks = emulated::blocks_per_processor(threads, shared_bytes);
  return cudaSuccess;
}
// Every thread has parameters of its own, as the language says.
template <class... Params, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Params...),
                               const Arguments&... arguments) {
  return emulated::launch(
      *config, reinterpret_cast<const void*>(kernel),
      [kernel, params = std::tuple<std::decay_t<Params>...>(arguments...)] { std::apply(kernel, params); });
}
