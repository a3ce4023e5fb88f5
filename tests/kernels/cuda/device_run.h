// Runs launches on a stream of their own, as they are or out of a captured graph, and compares what two runs gave.
#pragma once

#include <cstring>
#include <vector>

#include "device_memory.h"

namespace cosformer::kernels::cuda::testing {

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// enqueue(stream) gives a status; returns when all of it has ended.
template <class Enqueue>
void run_launches(bool captured, const Enqueue& enqueue) {
  check(cudaDeviceSynchronize(), "what came before");  // such a stream does not wait for memory that is being poisoned
  const Stream stream;
  if (captured) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    check(enqueue(stream.get()), "captured launch");
    check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphLaunch(executable, stream.get()), "cudaGraphLaunch");
    check(cudaStreamSynchronize(stream.get()), "graph replay");
    check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return;
  }
  check(enqueue(stream.get()), "launch");
  check(cudaStreamSynchronize(stream.get()), "kernels");
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace cosformer::kernels::cuda::testing
