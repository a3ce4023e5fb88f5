// The part of CUDA's runtime and driver that the kernels and their tests call.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <cxxabi.h>
#include <dlfcn.h>

#include "include/cuda.h"
#include "include/cuda_runtime.h"
#include "instructions.h"
#include "recorded_launches.h"

struct EmulatedGraph {
  std::vector<std::function<cudaError_t()>> work;
};
struct EmulatedStream {
  EmulatedGraph* captured = nullptr;
};

namespace {

std::string& last_failure() {
  static std::string text;
  return text;
}

// 8.0 or 9.0, as COSFORMER_CUDA_CAPABILITY says.
int capability() {
  const char* asked = std::getenv("COSFORMER_CUDA_CAPABILITY");
  return asked != nullptr && std::string(asked) == "8.0" ? 80 : 90;
}
std::size_t largest_shared() {
  return std::size_t{capability() == 80 ? 163U : 227U} << 10;
}

std::map<const void*, std::size_t>& shared_limits() {
  static std::map<const void*, std::size_t> limits;
  return limits;
}

emulated::LaunchRecorder*& recorder() {
  static emulated::LaunchRecorder* current = nullptr;
  return current;
}

std::string name_of(const void* kernel) {
  Dl_info info{};
  if (dladdr(kernel, &info) == 0 || info.dli_saddr != kernel || info.dli_sname == nullptr) return "";
  char* readable = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr);
  const std::string name = readable == nullptr ? info.dli_sname : readable;
  std::free(readable);
  return name;
}

// Now, or when the graph is launched that the stream is captured in.
cudaError_t enqueue(cudaStream_t stream, std::function<cudaError_t()> work) {
  if (stream == nullptr || stream->captured == nullptr) return work();
  stream->captured->work.push_back(std::move(work));
  return cudaSuccess;
}

}  // namespace

namespace emulated {

LaunchRecorder::LaunchRecorder() {
  recorder() = this;
}
LaunchRecorder::~LaunchRecorder() {
  recorder() = nullptr;
}

cudaError_t set_shared_limit(const void* kernel, int bytes) {
  if (bytes < 0 || static_cast<std::size_t>(bytes) > largest_shared()) return cudaErrorInvalidValue;
  shared_limits()[kernel] = static_cast<std::size_t>(bytes);
  return cudaSuccess;
}

int blocks_per_processor(int threads, std::size_t shared_bytes) {
  const std::size_t by_shared = (largest_shared() + 1024) / (shared_bytes + 1024);
  return static_cast<int>(std::min<std::size_t>(by_shared, static_cast<std::size_t>(2048 / threads)));
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> call) {
  const auto found = shared_limits().find(kernel);
  const std::size_t limit = found == shared_limits().end() ? std::size_t{48} << 10 : found->second;
  const dim3 grid = config.gridDim, block = config.blockDim;
  const unsigned threads = block.x * block.y * block.z;
  const bool fits = threads > 0 && threads <= 1024 && grid.x > 0 && grid.y > 0 && grid.y <= 65535 && grid.z > 0 &&
                    grid.z <= 65535 && config.dynamicSmemBytes <= std::max(limit, std::size_t{48} << 10);
  if (!fits) return cudaErrorInvalidValue;
  Launch launch;
  launch.grid = {grid.x, grid.y, grid.z};
  launch.block = {block.x, block.y, block.z};
  launch.shared_bytes = config.dynamicSmemBytes;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id == cudaLaunchAttributeCooperative) launch.cooperative = config.attrs[i].val.cooperative != 0;
  }
  if (recorder() != nullptr) {
    recorder()->launches.push_back({name_of(kernel), grid.x * grid.y * grid.z, launch.cooperative});
    return cudaSuccess;
  }
  launch.kernel = std::move(call);
  return enqueue(config.stream, [launch] {
    const std::string failure = run(launch);
    if (failure.empty()) return cudaSuccess;
    last_failure() = "emulated device: " + failure;
    return cudaErrorLaunchFailure;
  });
}

}  // namespace emulated

const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorNotSupported: return "not supported";
    case cudaErrorLaunchFailure: return last_failure().c_str();
  }
  return "unknown error";
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  *stream = new EmulatedStream;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) {
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  stream->captured = new EmulatedGraph;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = std::exchange(stream->captured, nullptr);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long /*flags*/) {
  *executable = new EmulatedGraph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t /*stream*/) {
  for (const auto& work : executable->work) {
    const cudaError_t status = work();
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return posix_memalign(memory, 256, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int byte, std::size_t bytes) {
  std::memset(memory, byte, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int byte, std::size_t bytes, cudaStream_t stream) {
  if (recorder() != nullptr) return cudaSuccess;
  return enqueue(stream, [=] { return cudaMemset(memory, byte, bytes); });
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind /*kind*/, cudaStream_t stream) {
  if (recorder() != nullptr) return cudaSuccess;
  return enqueue(stream, [=] {
    for (std::size_t row = 0; row < height; ++row) {
      std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = capability() == 80 ? 108 : 132; break;
    case cudaDevAttrComputeCapabilityMajor: *value = capability() / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = capability() % 10; break;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned /*version*/,
                                             unsigned long long /*flags*/, cudaDriverEntryPointQueryResult* result) {
  const bool known = std::string(name) == "cuTensorMapEncodeTiled" && capability() == 90;
  *function = known ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : nullptr;
  *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

// Refuses what the driver refuses.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType /*type*/, cuuint32_t rank, void* data,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave /*interleave*/,
                                CUtensorMapSwizzle /*swizzle*/, CUtensorMapL2promotion /*promotion*/,
                                CUtensorMapFloatOOBfill /*fill*/) {
  bool well = rank == 4 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && box[0] == 64 && box[2] == 1 &&
              box[3] == 1 && box[1] >= 1 && box[1] <= 256;
  for (int i = 0; i < 4; ++i) well = well && sizes[i] >= 1 && sizes[i] <= (std::uint64_t{1} << 32) && steps[i] == 1;
  for (int i = 0; i < 3; ++i) well = well && strides[i] % 16 == 0 && strides[i] < (std::uint64_t{1} << 40);
  if (!well) return CUDA_ERROR_INVALID_VALUE;
  emulated::TensorMap tensor{static_cast<unsigned char*>(data), {}, {}, box[1]};
  std::copy_n(sizes, 4, tensor.sizes);
  std::copy_n(strides, 3, tensor.strides);
  std::memcpy(map->bytes, &tensor, sizeof(tensor));
  return CUDA_SUCCESS;
}
