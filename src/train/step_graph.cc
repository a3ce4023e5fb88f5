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

// Shapes, and which of the tensors are there.
std::vector<std::int64_t> signature_of(StepInputs inputs) {
  std::vector<std::int64_t> signature;
  for (const at::Tensor* t : tensors_of(inputs)) {
    signature.push_back(t->defined() ? t->dim() : -1);
    if (t->defined()) signature.insert(signature.end(), t->sizes().begin(), t->sizes().end());
  }
  return signature;
}

}  // namespace

struct StepGraph::Parts {
  struct Captured {
    int seen = 0;
    StepInputs inputs;
    at::Tensor loss;
    std::unique_ptr<at::cuda::CUDAGraph> graph;
  };
  std::map<std::vector<std::int64_t>, Captured> shapes;
  // One pool of memory for all: they never run at the same time, and what outlives a replay is copied out of it.
  at::cuda::MempoolId_t pool = at::cuda::graph_pool_handle();
  c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();

  at::Tensor run_as_it_is(const StepInputs& inputs, const Step& step);
  void capture(Captured& into, const StepInputs& inputs, const Step& step);
};

// Not on the default stream: what is warmed up there (gradient buffers, library handles) would not be captured.
at::Tensor StepGraph::Parts::run_as_it_is(const StepInputs& inputs, const Step& step) {
  c10::cuda::getCurrentCUDAStream().synchronize();
  const c10::cuda::CUDAStreamGuard guard(stream);
  const at::Tensor loss = step(inputs).clone();
  stream.synchronize();
  return loss;
}

void StepGraph::Parts::capture(Captured& into, const StepInputs& inputs, const Step& step) {
  into.inputs = inputs;
  for (at::Tensor* t : tensors_of(into.inputs)) {
    if (t->defined()) *t = t->clone();
  }
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

at::Tensor StepGraph::run(const StepInputs& inputs, const Step& step) {
  Parts& p = *parts_;
  const std::vector<std::int64_t> signature = signature_of(inputs);
  if (p.shapes.size() == kMostGraphs && !p.shapes.contains(signature)) return p.run_as_it_is(inputs, step);
  const int warm_ups = p.shapes.size() <= 1 ? kFirstWarmUps : kWarmUps;
  Parts::Captured& captured = p.shapes[signature];
  if (!captured.graph) {
    if (captured.seen++ < warm_ups) return p.run_as_it_is(inputs, step);
    p.capture(captured, inputs, step);
  }
  StepInputs given = inputs;
  const std::vector<at::Tensor*> from = tensors_of(given), into = tensors_of(captured.inputs);
  for (std::size_t at = 0; at < from.size(); ++at) {
    if (from[at]->defined()) into[at]->copy_(*from[at], /*non_blocking=*/true);
  }
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

at::Tensor StepGraph::run(const StepInputs& inputs, const Step& step) {
  return step(inputs);
}

#endif

}  // namespace cosformer::train
