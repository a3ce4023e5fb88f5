#include "models/drawn_pixels.h"

#include <ATen/ATen.h>

namespace cosformer::models {

DrawnPixels drawn_pixels(const Sequences& images, double blank, std::int64_t most) {
  at::Tensor drawn = images.content.ne(blank);
  if (images.mask.defined()) drawn = drawn.logical_and(images.mask);
  drawn.select(1, 0).logical_or_(drawn.any(1).logical_not());
  const at::Tensor count = drawn.sum(1, /*keepdim=*/true);
  const std::int64_t kept = most > 0 ? most : count.max().item<std::int64_t>();
  // Each drawn pixel writes its number to its rank; blanks to a column that is cut off again.
  const at::Tensor rank = at::where(drawn, drawn.cumsum(1).sub(1), at::full({}, kept, count.options()));
  const at::Tensor number = at::arange(drawn.size(1), count.options()).expand_as(rank);
  DrawnPixels result;
  result.places =
      at::zeros({drawn.size(0), kept + 1}, count.options()).scatter(1, rank, number).narrow(1, 0, kept).contiguous();
  result.sequences.content = images.content.gather(1, result.places);
  result.sequences.mask = at::arange(kept, count.options()).lt(count);
  return result;
}

}  // namespace cosformer::models
