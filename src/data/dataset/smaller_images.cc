#include "data/dataset/smaller_images.h"

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "data/dataset/array_dataset.h"

namespace cosformer::data {

DatasetPointer smaller_images(const DatasetPointer& images, std::int64_t factor) {
  DatasetInfo info = images->info();
  if (info.width == 0) {
    throw UserError(fmt::format("data.shrink is {}, but '{}' holds no images; leave it at 1", factor, info.name));
  }
  if (info.width % factor != 0 || info.height % factor != 0) {
    throw UserError(
        fmt::format("data.shrink is {}, and the images of '{}' have {} x {} pixels; expected a divisor of both sides",
                    factor, info.name, info.width, info.height));
  }
  const std::int64_t width = info.width / factor, height = info.height / factor, square = factor * factor;
  DatasetBuilder builder(ElementType::kU8);
  std::vector<std::int64_t> sums(static_cast<std::size_t>(width));
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width * height));
  for (std::size_t at = 0; at < images->size(); ++at) {
    const SequenceView whole = images->get(at).first;
    if (whole.type != ElementType::kU8) throw std::logic_error("pixels that are no bytes");
    const auto* from = static_cast<const std::uint8_t*>(whole.data);
    for (std::int64_t y = 0; y < height; ++y) {
      sums.assign(sums.size(), 0);
      for (std::int64_t line = y * factor; line < (y + 1) * factor; ++line) {
        for (std::int64_t x = 0; x < info.width; ++x) {
          sums[static_cast<std::size_t>(x / factor)] += from[line * info.width + x];
        }
      }
      for (std::int64_t x = 0; x < width; ++x) {
        pixels[static_cast<std::size_t>(y * width + x)] =
            static_cast<std::uint8_t>((sums[static_cast<std::size_t>(x)] + square / 2) / square);
      }
    }
    builder.add(std::span<const std::uint8_t>(pixels), images->label(at));
  }
  info.width = width;
  info.height = height;
  return builder.finish(std::move(info));
}

}  // namespace cosformer::data
