// Images without their blank pixels: what is left, and where in the image each of it stood.
#pragma once

#include "models/sequences.h"

namespace cosformer::models {

struct DrawnPixels {
  Sequences sequences;  // [B, K], the drawn pixels of each image in their order; behind them padding
  at::Tensor places;    // [B, K] int64: the number of each pixel in its image; 0 for padding
};

// `blank`: the element that is left out, wherever the mask has it present. Of an image with nothing but blanks the
// first pixel stays. K is `most`, which no image may exceed, or with 0 as many as the fullest has, for which the device
// is waited for.
DrawnPixels drawn_pixels(const Sequences& images, double blank, std::int64_t most);

}  // namespace cosformer::models
