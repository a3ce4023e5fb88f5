// cosFormer attention on NVIDIA GPUs: how a problem is started.
//
// The operator is the one of kernels/attention.h; all data pointers here are device pointers. The functions only
// enqueue work on the given stream: they allocate nothing, never synchronise and never read device memory, so they can
// be captured in a CUDA graph. Same inputs and same shapes give the same bits: no atomics, and the number of parts that
// a sequence is split into depends on shapes and the kind of device alone.
//
// A call is: choose (choice.h), provide the workspace and the sums that the choice asks for, start.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include "kernels/cuda/choice.h"
#include "kernels/cuda/problem.h"

namespace cosformer::kernels::cuda {

// The current device as choose() wants to know it.
Device this_device();

// With the choice for exactly this problem, and its workspace (256-byte aligned) of choice.workspace.bytes at least.
// cudaErrorInvalidValue for problems outside the contract, else what the launches returned.
cudaError_t attention_fwd(const Problem& problem, const Choice& choice, void* workspace, std::size_t workspace_bytes,
                          cudaStream_t stream);
cudaError_t attention_bwd(const Problem& problem, const Gradients& gradients, const Choice& choice, void* workspace,
                          std::size_t workspace_bytes, cudaStream_t stream);

// The kernel for new tokens on a carried state (Family::kDecode), which attention_fwd starts.
cudaError_t launch_decode(const Problem& problem, cudaStream_t stream);

}  // namespace cosformer::kernels::cuda
