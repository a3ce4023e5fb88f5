#include "data/readers/images/png_image.h"

#include <algorithm>

#include <fmt/core.h>
#include <png.h>

#include "base/error.h"
#include "base/files/atomic_file.h"

namespace cosformer::data {
namespace {

constexpr std::uint64_t kMaxPixels = std::uint64_t{1} << 24;

// Frees what libpng holds for an image, on every way out.
struct PngImage {
  png_image image{};
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(&image); }
};

}  // namespace

std::uint8_t gray_of(std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  // TensorFlow turns the bytes into fractions, weighs them, scales by 255.5 and cuts off.
  const float fraction = 0.2989F * (static_cast<float>(red) / 255.0F) + 0.587F * (static_cast<float>(green) / 255.0F) +
                         0.114F * (static_cast<float>(blue) / 255.0F);
  return static_cast<std::uint8_t>(std::min(fraction * 255.5F, 255.0F));
}

GrayImage decode_png(std::string_view bytes) {
  PngImage png;
  const auto refuse = [&](const std::string& reason) { throw UserError("it is not a readable PNG: " + reason); };
  if (png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size()) == 0) refuse(png.image.message);
  if (std::uint64_t{png.image.width} * png.image.height > kMaxPixels) {
    refuse(fmt::format("it has {} x {} pixels; expected at most {}", png.image.width, png.image.height, kMaxPixels));
  }
  const bool in_colour = (png.image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  png.image.format = in_colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  GrayImage result;
  result.width = static_cast<int>(png.image.width);
  result.height = static_cast<int>(png.image.height);
  std::vector<std::uint8_t> samples(PNG_IMAGE_SIZE(png.image));
  const png_color black{};
  if (png_image_finish_read(&png.image, &black, samples.data(), 0, nullptr) == 0) refuse(png.image.message);
  if (!in_colour) {
    result.pixels = std::move(samples);
    return result;
  }
  result.pixels.reserve(samples.size() / 3);
  for (std::size_t i = 0; i + 2 < samples.size(); i += 3) {
    result.pixels.push_back(gray_of(samples[i], samples[i + 1], samples[i + 2]));
  }
  return result;
}

void write_png(const std::string& path, const GrayImage& image) {
  PngImage png;
  png.image.width = static_cast<png_uint_32>(image.width);
  png.image.height = static_cast<png_uint_32>(image.height);
  png.image.format = PNG_FORMAT_GRAY;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png.image);
  std::vector<char> bytes(size);
  if (png_image_write_to_memory(&png.image, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr) == 0) {
    throw Failure(fmt::format("cannot encode '{}' as PNG: {}", path, png.image.message));
  }
  AtomicFile file(path);
  file.write(bytes.data(), size);
  file.commit();
}

}  // namespace cosformer::data
