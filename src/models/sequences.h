// What models read.
#pragma once

#include <ATen/core/Tensor.h>

namespace cosformer::models {

// Sequences of one width, padded at their ends.
struct Sequences {
  at::Tensor content;  // [B, T]: token ids (int32 or int64), or float values
  at::Tensor mask;     // [B, T] bool, true = present; undefined: all are
};

}  // namespace cosformer::models
