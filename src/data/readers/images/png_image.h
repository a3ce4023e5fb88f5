// PNG files as gray pixels, through libpng.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cosformer::data {

struct GrayImage {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  // row by row
};

// The luminance of a colour, rounded as LRA's pipeline does: weights .2989, .587, .114.
std::uint8_t gray_of(std::uint8_t red, std::uint8_t green, std::uint8_t blue);

// Gray images stay as they are, others are converted; transparency shows black. Throws UserError, with the reason
// alone, when the bytes are not a PNG of at most 2^24 pixels.
GrayImage decode_png(std::string_view bytes);

// An 8-bit gray PNG, written atomically.
void write_png(const std::string& path, const GrayImage& image);

}  // namespace cosformer::data
