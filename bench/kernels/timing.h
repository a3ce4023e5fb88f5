// Times on the device, for the test program's bench.
#pragma once

#include <functional>

#include <cuda_runtime_api.h>

namespace cosformer::kernels::cuda::testing {

// Median milliseconds of one call, each timed by events after a warm-up.
double median_ms(const std::function<void(cudaStream_t)>& call, int repeats);

// Copy bandwidth in bytes per millisecond, read and written bytes counted.
double copy_rate();

}  // namespace cosformer::kernels::cuda::testing
