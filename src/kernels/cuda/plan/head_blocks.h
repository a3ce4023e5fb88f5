// Heads of more than 128 as problems of up to 128 columns on either side, which the Hopper kernels take.
//
// Scores and row sums add up over blocks of features, their gradients over blocks of values. So every pair of a block
// of features and one of values is a problem by itself, with its own share of e = −dout·out, and
//   out, dv of a block of values     are sums over the blocks of features,
//   dq, dk of a block of features    are sums over the blocks of values.
// What an earlier pair has left is added to as the second of two sides does in full attention with a decay.
#pragma once

#include <cstdint>

#include "kernels/cuda/limits.h"

namespace cosformer::kernels::cuda {

// The features, or the values, of a head in one block or two.
class HeadSide {
 public:
  explicit HeadSide(std::int64_t columns)
      : columns_(columns), first_(columns <= kWideDim ? columns : (columns / 2 + 7) / 8 * 8) {}
  int blocks() const { return first_ == columns_ ? 1 : 2; }
  std::int64_t begin(int block) const { return block == 0 ? 0 : first_; }
  std::int64_t columns(int block) const { return block == 0 ? first_ : columns_ - first_; }
  // Blocks need as many slices each.
  bool even() const { return blocks() == 1 || columns(1) > kNarrowDim; }

 private:
  std::int64_t columns_, first_;
};

// In how many blocks a head is taken; every pair of them is a part.
struct HeadParts {
  int features = 1, values = 1;
  int count() const { return features * values; }
};

}  // namespace cosformer::kernels::cuda
