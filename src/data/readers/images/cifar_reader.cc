// load_cifar10.
#include <array>
#include <span>

#include <fmt/core.h>

#include "base/error.h"
#include "data/readers/file_content.h"
#include "data/readers/images/image_readers.h"
#include "data/readers/images/image_sequence.h"
#include "data/readers/images/png_image.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kSide = 32, kPixels = kSide * kSide;
constexpr std::size_t kColourRecord = 1 + 3 * kPixels, kGrayRecord = 1 + kPixels;
constexpr int kClasses = 10;

std::size_t record_size(const std::string& path, std::size_t file_size, int channels) {
  const bool colour = file_size % kColourRecord == 0 && channels != 1;
  const bool gray = file_size % kGrayRecord == 0 && channels != 3;
  if (file_size == 0 || (!colour && !gray)) {
    refuse_file(path, fmt::format("its {} bytes are not a whole number of CIFAR-10 records; expected {}", file_size,
                                  channels == 1   ? "records of 1025 bytes"
                                  : channels == 3 ? "records of 3073 bytes"
                                                  : "records of 3073 (colour) or 1025 bytes (gray)"));
  }
  if (colour && gray)
    refuse_file(path, "it could be colour or gray by its size; say which with the number of channels");
  return colour ? kColourRecord : kGrayRecord;
}

}  // namespace

Loaded load_cifar10(const std::vector<std::string>& paths, const CifarOptions& options) {
  if (options.channels != 0 && options.channels != 1 && options.channels != 3) {
    throw UserError(fmt::format("CIFAR-10 images have 3 channels, or 1 when gray; got {}", options.channels));
  }
  if (paths.empty()) throw UserError("no CIFAR-10 file was given; expected at least one");
  DatasetBuilder builder(ElementType::kU8);
  RowReporter reporter(options.rows);
  for (const std::string& path : paths) {
    const std::string content = read_content(path);
    const std::size_t size = record_size(path, content.size(), options.channels);
    for (std::size_t begin = 0; begin < content.size(); begin += size) {
      const auto* record = reinterpret_cast<const std::uint8_t*>(content.data()) + begin;
      if (record[0] >= kClasses) {
        reporter.bad(path, "record", begin / size + 1, fmt::format("the label is {}; expected 0 to 9", record[0]));
        continue;
      }
      const std::uint8_t* pixels = record + 1;
      std::array<std::uint8_t, kPixels> gray{};
      for (std::size_t i = 0; i < kPixels; ++i) {
        gray[i] = size == kGrayRecord ? pixels[i] : gray_of(pixels[i], pixels[kPixels + i], pixels[2 * kPixels + i]);
      }
      builder.add(std::span<const std::uint8_t>(gray), record[0]);
    }
  }
  return reporter.finish(
      paths.front(), builder,
      describe_images("cifar10", kSide, kSide,
                      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}));
}

}  // namespace cosformer::data
