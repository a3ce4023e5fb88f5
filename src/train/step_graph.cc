#include "train/step_graph.h"

#include <map>

#include <ATen/ATen.h>

#ifdef COSFORMER_WITH_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace cosformer::train {

#ifdef COSFORMER_WITH_CUDA

namespace {

constexpr int kFirstWarmUps = 3;  // libraries choose their algorithms and the allocator its blocks
constexpr int kWarmUps = 1;       // of each further shape
constexpr std::size_t kMostGraphs = 64;

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
  struct Captured {
    int seen = 0;
    DeviceBatch inputs;
    at::Tensor loss;
    std::unique_ptr<at::cuda::CUDAGraph> graph;
  };
  std::map<std::vector<std::int64_t>, Captured> shapes;
  // One pool of memory for all: they never run at the same time, and what outlives a replay is copied out of it.
  at::cuda::MempoolId_t pool = at::cuda::graph_pool_handle();
  c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();

  at::Tensor run_as_it_is(const DeviceBatch& batch, const Step& step);
  void capture(Captured& into, const DeviceBatch& batch, const Step& step);
};

// Not on the default stream: what is warmed up there (gradient buffers, library handles) would not be captured.
at::Tensor StepGraph::Parts::run_as_it_is(const DeviceBatch& batch, const Step& step) {
  c10::cuda::getCurrentCUDAStream().synchronize();
  const c10::cuda::CUDAStreamGuard guard(stream);
  const at::Tensor loss = step(batch).clone();
  stream.synchronize();
  return loss;
}

void StepGraph::Parts::capture(Captured& into, const DeviceBatch& batch, const Step& step) {
  into.inputs.first = {copy_of(batch.first.content), copy_of(batch.first.mask)};
  into.inputs.second = {copy_of(batch.second.content), copy_of(batch.second.mask)};
  into.inputs.labels = batch.labels.clone();
  c10::cuda::getCurrentCUDAStream().synchronize();
  const c10::cuda::CUDAStreamGuard guard(stream);
  auto graph = std::make_unique<at::cuda::CUDAGraph>();
  graph->capture_begin(pool);
  into.loss = step(into.inputs);
  graph->capture_end();
  into.graph = std::move(graph);
}

StepGraph::StepGraph() : parts_(std::make_unique<Parts>()) {}
StepGraph::~StepGraph() = default;

bool StepGraph::available(at::Device device) {
  return device.is_cuda();
}

at::Tensor StepGraph::run(const DeviceBatch& batch, const Step& step) {
  Parts& p = *parts_;
  const std::vector<std::int64_t> signature = signature_of(batch);
  if (p.shapes.size() == kMostGraphs && !p.shapes.contains(signature)) return p.run_as_it_is(batch, step);
  const int warm_ups = p.shapes.size() <= 1 ? kFirstWarmUps : kWarmUps;
  Parts::Captured& captured = p.shapes[signature];
  if (!captured.graph) {
    if (captured.seen++ < warm_ups) return p.run_as_it_is(batch, step);
    p.capture(captured, batch, step);
  }
  const std::vector<at::Tensor> from = tensors_of(batch), to = tensors_of(captured.inputs);
  for (std::size_t at = 0; at < from.size(); ++at) to[at].copy_(from[at], /*non_blocking=*/true);
  captured.graph->replay();
  return captured.loss.clone();
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
