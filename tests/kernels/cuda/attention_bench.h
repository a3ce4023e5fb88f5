// Timing of the CUDA kernels beside their error and a copy on the same device.
#pragma once

namespace cosformer::kernels::cuda::testing {

// bench [filter]: times the shapes whose name contains the filter; one JSON line each.
// profile NAME: runs the passes of one shape once, for a profiler.
int bench_main(int argc, char** argv);

}  // namespace cosformer::kernels::cuda::testing
