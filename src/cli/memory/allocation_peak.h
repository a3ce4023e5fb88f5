// How much memory torch held at most while this object lived, beyond what it held at its birth.
#pragma once

#include <c10/core/Device.h>

namespace cosformer::cli {

class AllocationPeak {
 public:
  explicit AllocationPeak(c10::Device device);
  AllocationPeak(const AllocationPeak&) = delete;
  AllocationPeak& operator=(const AllocationPeak&) = delete;
  double bytes() const;

 private:
  c10::Device device_;
  double before_ = 0;
};

}  // namespace cosformer::cli
