// Timing of the norms beside a copy on the same device.
#pragma once

namespace cosformer::kernels::cuda::testing {

// One JSON line for each shape; `rate` is a copy's, in bytes per millisecond.
void bench_row_norms(double rate);

}  // namespace cosformer::kernels::cuda::testing
