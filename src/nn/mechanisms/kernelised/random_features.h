// Random directions for mechanisms that estimate a kernel: how they are drawn, and when anew.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cosformer::nn {

// [heads, count, dim], each row a standard normal vector. On the CPU, from torch's generator.
at::Tensor gaussian_directions(std::int64_t heads, std::int64_t count, std::int64_t dim);

// The same, but the rows of each group of `dim` are orthogonal: directions of a uniformly random orthogonal matrix,
// lengths of independent normal vectors.
at::Tensor orthogonal_directions(std::int64_t heads, std::int64_t count, std::int64_t dim);

// Counts training forwards in a buffer, so that a resumed run draws at the same steps.
class RedrawSchedule {
 public:
  static at::Tensor new_count();  // to be registered as a buffer

  // Counts one forward; true for every `interval`th after the first. Never with an interval of 0.
  bool is_due(at::Tensor& count, std::int64_t interval);

 private:
  std::int64_t value_ = 0;     // of the buffer, which may lie on a GPU
  std::int64_t version_ = -1;  // of the buffer when value_ was its value: loading a checkpoint changes it
};

}  // namespace cosformer::nn
