#include "cli/terminal/terminal_image.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace cosformer::cli {
namespace {

bool has_true_colour() {
  const char* value = std::getenv("COLORTERM");
  return isatty(STDOUT_FILENO) == 1 && value != nullptr &&
         (std::string_view(value) == "truecolor" || std::string_view(value) == "24bit");
}

std::string colour(int layer, int gray) {
  const std::string g = std::to_string(gray);
  return "\033[" + std::to_string(layer) + ";2;" + g + ";" + g + ";" + g + "m";
}

}  // namespace

std::string terminal_image(const data::SequenceView& pixels, std::int64_t width, std::int64_t height) {
  std::vector<float> values(pixels.size);
  pixels.copy_values(pixels.size, 1.0F, values.data());
  const auto gray = [&](std::int64_t row, std::int64_t column) {
    const std::int64_t at = row * width + column;
    return row < height && at < static_cast<std::int64_t>(values.size())
               ? static_cast<int>(values[static_cast<std::size_t>(at)])
               : 0;
  };
  static constexpr std::string_view kShades = " .:-=+*#%@";
  const bool coloured = has_true_colour();
  std::string text;
  for (std::int64_t row = 0; row < height; row += 2) {
    for (std::int64_t column = 0; column < width; ++column) {
      const int upper = gray(row, column), lower = gray(row + 1, column);
      if (coloured) {
        text += colour(38, upper) + colour(48, lower) + "\u2580";
      } else {
        text += kShades[static_cast<std::size_t>((upper + lower) / 2) * kShades.size() / 256];
      }
    }
    text += coloured ? "\033[0m\n" : "\n";
  }
  return text;
}

}  // namespace cosformer::cli
