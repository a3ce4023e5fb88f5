#include "data/readers/images/image_sequence.h"

#include <span>

#include <fmt/core.h>

#include "base/error.h"
#include "data/readers/file_content.h"
#include "data/readers/images/png_image.h"

namespace cosformer::data {

DatasetInfo describe_images(std::string name, std::int64_t width, std::int64_t height,
                            std::vector<std::string> classes) {
  DatasetInfo info;
  info.name = std::move(name);
  info.content = Content::kValues;
  info.vocabulary = kByteVocabulary;
  info.value_scale = 1.0F / 255.0F;
  info.width = width;
  info.height = height;
  info.classes = std::move(classes);
  return info;
}

void PngCollector::add(const std::string& path, std::int32_t label, bool empty_is_known) {
  try {
    const std::string bytes = read_content(path);
    if (bytes.empty() && empty_is_known) return reporter_.empty_image();
    add_bytes(bytes, label);
  } catch (const UserError& error) {
    reporter_.bad_file(path, error.what());
  }
}

void PngCollector::add_bytes(std::string_view bytes, std::int32_t label) {
  const GrayImage image = decode_png(bytes);
  if (width_ == 0) {
    width_ = image.width;
    height_ = image.height;
  }
  if (image.width != width_ || image.height != height_) {
    const auto size = [](std::int64_t w, std::int64_t h) { return fmt::format("{} x {}", w, h); };
    throw UserError(fmt::format("it has {} pixels; expected {}{}", size(image.width, image.height),
                                size(width_, height_), size_given_ ? " as in training" : " as the first image"));
  }
  builder_.add(std::span<const std::uint8_t>(image.pixels), label);
}

}  // namespace cosformer::data
