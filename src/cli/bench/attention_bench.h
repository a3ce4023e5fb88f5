// One measurement of one way to compute attention: time, memory, error, and the fraction of what the machine could do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/dtype.h"

namespace cosformer::cli {

struct BenchCase {
  std::string impl;  // chunked, quadratic, recurrent, softmax
  std::string pass;  // fwd, fwd+bwd, decode: `length` new tokens on a carried state
  std::string device;
  kernels::DType dtype = kernels::DType::kFloat32;
  bool causal = true;
  bool decay = false;
  long long batch = 1, heads = 8, length = 1024, dim = 64;
  int threads = 1;
};

struct BenchResult {
  double median_ms = 0, min_ms = 0, p90_ms = 0;
  double tokens_per_s = 0;
  double peak_bytes = 0;     // most memory held beyond the inputs
  double max_error = 0;      // of one head, against the oracle in float64; NaN: not compared
  double error_bound = 0;    // twice the naive forms' error
  double roof_fraction = 0;  // of an FMA loop (CPU) or a copy (GPU, decode) timed in the same run
  double best_fraction = 0;  // the same of the fastest run, as the roof is the fastest round of its loop
  std::string skipped;       // why there is no measurement, or empty
};

// The ceiling that roof_fraction is measured against, timed on this machine now.
struct Roof {
  double gflops_float32 = 0, gflops_bf16 = 0;  // all threads together; 0 on a GPU
  double copy_gb_per_s = 0;                    // reading and writing; 0 on a CPU
};

Roof measure_roof(const std::string& device, int threads);

struct Effort {
  double seconds = 1.0;      // how long to repeat a measurement
  double most_seconds = 60;  // a single run expected to take longer is skipped
};

// A case whose inputs exist and whose first run was checked, to be timed once or in turns with others.
struct Measurement {
  BenchCase c;
  BenchResult result;          // without times as yet
  std::function<void()> once;  // empty: skipped
  // A copy to run by turns with it, where that is what limits it, and the bytes that each moves.
  std::function<void()> copy;
  double moved_bytes = 0, copied_bytes = 0;
  std::vector<double> times_ms, copy_times_ms;
};

Measurement prepare(const BenchCase& c, const Effort& effort);
void repeat(Measurement& m, double seconds);
BenchResult finish(const Measurement& m, const Roof& roof);

}  // namespace cosformer::cli
