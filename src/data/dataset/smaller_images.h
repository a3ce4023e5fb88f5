// Images of fewer pixels, and so shorter sequences.
#pragma once

#include <cstdint>

#include "data/dataset/dataset.h"
#include "data/dataset/subset.h"

namespace cosformer::data {

// Each pixel is the mean, rounded, of a square of `factor` x `factor` pixels. Throws UserError where `images` holds
// none, or their sides are no multiples of the factor; the message names data.shrink.
DatasetPointer smaller_images(const DatasetPointer& images, std::int64_t factor);

}  // namespace cosformer::data
