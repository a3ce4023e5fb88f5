#include "train/step_graph.h"

#include <ATen/ATen.h>

#ifdef COSFORMER_WITH_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace cosformer::train {

#ifdef COSFORMER_WITH_CUDA

namespace {

constexpr int kWarmUps = 3;  // libraries choose their algorithms and the allocator its blocks

std::vector<at::Tensor> tensors_of(const DeviceBatch& b) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& t : {b.first.content, b.first.mask, b.second.content, b.second.mask, b.labels}) {
    if (t.defined()) all.push_back(t);
  }
  return all;
}

// Shapes, and which of the tensors are there.
std::vector<std::int64_t> signature_of(const DeviceBatch& b) {
  std::vector<std::int64_t> signature;
  for (const at::Tensor& t : {b.first.content, b.first.mask, b.second.content, b.second.mask, b.labels}) {
    signature.push_back(t.defined() ? t.dim() : -1);
    if (t.defined()) signature.insert(signature.end(), t.sizes().begin(), t.sizes().end());
  }
  return signature;
}

at::Tensor copy_of(const at::Tensor& t) {
  return t.defined() ? t.clone() : t;
}

}  // namespace

struct StepGraph::Parts {
  std::vector<std::int64_t> signature;
  int seen = 0;
  DeviceBatch inputs;
  at::Tensor loss;
  std::unique_ptr<at::cuda::CUDAGraph> graph;
  c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
};

StepGraph::StepGraph() : parts_(std::make_unique<Parts>()) {}
StepGraph::~StepGraph() = default;

bool StepGraph::available(at::Device device) {
  return device.is_cuda();
}

at::Tensor StepGraph::run(const DeviceBatch& batch, const Step& step) {
  Parts& p = *parts_;
  const std::vector<std::int64_t> signature = signature_of(batch);
  if (p.graph == nullptr && signature != p.signature) {
    p.signature = signature;
    p.seen = 0;
  }
  if (signature != p.signature || (p.graph == nullptr && p.seen < kWarmUps)) {
    ++p.seen;
    // Not on the default stream: what is warmed up there (gradient buffers, library handles) would not be captured.
    p.stream.synchronize();
    c10::cuda::getCurrentCUDAStream().synchronize();
    const c10::cuda::CUDAStreamGuard guard(p.stream);
    const at::Tensor loss = step(batch).clone();
    p.stream.synchronize();
    return loss;
  }
  if (p.graph == nullptr) {
    p.inputs.first = {copy_of(batch.first.content), copy_of(batch.first.mask)};
    p.inputs.second = {copy_of(batch.second.content), copy_of(batch.second.mask)};
    p.inputs.labels = batch.labels.clone();
    c10::cuda::getCurrentCUDAStream().synchronize();
    const c10::cuda::CUDAStreamGuard guard(p.stream);
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    graph->capture_begin();
    p.loss = step(p.inputs);
    graph->capture_end();
    p.graph = std::move(graph);
  }
  const std::vector<at::Tensor> from = tensors_of(batch), to = tensors_of(p.inputs);
  for (std::size_t at = 0; at < from.size(); ++at) to[at].copy_(from[at], /*non_blocking=*/true);
  p.graph->replay();
  return p.loss.clone();
}

#else

struct StepGraph::Parts {};
StepGraph::StepGraph() = default;
StepGraph::~StepGraph() = default;

bool StepGraph::available(at::Device) {
  return false;
}

at::Tensor StepGraph::run(const DeviceBatch& batch, const Step& step) {
  return step(batch);
}

#endif

}  // namespace cosformer::train
