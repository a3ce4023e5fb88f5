// Runs a case of the operator on the GPU, results as the comparison with the oracle wants them.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/verify/run_case.h"

namespace cosformer::kernels::cuda::testing {

enum class Path : std::uint8_t {
  kDirect,    // forward and backward, each on a stream of its own
  kCaptured,  // the same, captured in a graph and replayed
  kDecode,    // the decode kernel, forward only: needs a case that carries a state, of at most 8 tokens
};

verify::CaseResult run_on_device(const verify::AttentionCase& c, const verify::CaseData& data, Path path);

}  // namespace cosformer::kernels::cuda::testing
