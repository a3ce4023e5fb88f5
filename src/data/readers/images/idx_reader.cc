// load_idx and load_fashion_mnist.
#include <algorithm>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "data/readers/file_content.h"
#include "data/readers/images/image_readers.h"
#include "data/readers/images/image_sequence.h"

namespace cosformer::data {
namespace {

constexpr std::uint64_t kMaxImagePixels = std::uint64_t{1} << 24;

struct IdxFile {
  std::string content;
  std::vector<std::uint64_t> shape;
  std::span<const std::uint8_t> data;
};

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Two zero bytes, the element type (8: u8), the number of dimensions, each dimension as a big-endian u32, the elements.
IdxFile read_idx(const std::string& path, std::size_t dimensions) {
  IdxFile file{read_content(path), {}, {}};
  const std::string& content = file.content;
  const std::size_t header = 4 + 4 * dimensions;
  const std::string expected = fmt::format("; expected an IDX file of bytes with {} dimensions", dimensions);
  if (content.size() < header) refuse_file(path, fmt::format("it has {} bytes{}", content.size(), expected));
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(content[i])); };
  if (byte(0) != 0 || byte(1) != 0 || byte(2) != 8) refuse_file(path, "it does not begin with 0, 0, 8" + expected);
  if (byte(3) != dimensions) refuse_file(path, fmt::format("it has {} dimensions{}", byte(3), expected));

  const std::uint64_t available = content.size() - header;
  unsigned __int128 count = 1;  // three dimensions of 32 bits may leave 64
  for (std::size_t i = 0; i < dimensions; ++i) {
    file.shape.push_back(big_endian(content.data() + 4 + 4 * i));
    count *= file.shape.back();
  }
  if (count != available) {
    refuse_file(path, fmt::format("its dimensions do not agree with the {} bytes that follow{}", available, expected));
  }
  file.data = {reinterpret_cast<const std::uint8_t*>(content.data()) + header, static_cast<std::size_t>(available)};
  return file;
}

}  // namespace

Loaded load_idx(const std::string& images_path, const std::string& labels_path, const IdxOptions& options) {
  const bool labelled = !labels_path.empty();
  const IdxFile images = read_idx(images_path, 3), labels = labelled ? read_idx(labels_path, 1) : IdxFile{};
  if (labelled && images.shape[0] != labels.shape[0]) {
    refuse_file(labels_path, fmt::format("it has {} labels; expected {}, one for each image of '{}'", labels.shape[0],
                                         images.shape[0], images_path));
  }
  const std::uint64_t height = images.shape[1], width = images.shape[2];
  if (height == 0 || width == 0 || height * width > kMaxImagePixels) {
    refuse_file(images_path,
                fmt::format("its images have {} x {} pixels; expected 1 to {}", width, height, kMaxImagePixels));
  }
  std::vector<std::string> classes = options.classes;
  if (classes.empty() && !labels.data.empty()) {
    const int greatest = *std::max_element(labels.data.begin(), labels.data.end());
    for (int label = 0; label <= greatest; ++label) classes.push_back(std::to_string(label));
  }
  DatasetBuilder builder(ElementType::kU8);
  RowReporter reporter(options.rows);
  const auto pixels = static_cast<std::size_t>(height * width);
  for (std::size_t i = 0; i < images.shape[0]; ++i) {
    if (labelled && labels.data[i] >= classes.size()) {
      reporter.bad(labels_path, "record", i + 1,
                   fmt::format("the label is {}; expected 0 to {}", labels.data[i], classes.size() - 1));
      continue;
    }
    builder.add(images.data.subspan(i * pixels, pixels), labelled ? std::int32_t{labels.data[i]} : kNoLabel);
  }
  return reporter.finish(images_path, builder,
                         describe_images(options.name, static_cast<std::int64_t>(width),
                                         static_cast<std::int64_t>(height), std::move(classes)));
}

Loaded load_fashion_mnist(MnistPart part, const std::string& folder) {
  const std::string stem = folder + (part == MnistPart::kTrain ? "/train" : "/t10k");
  IdxOptions options;
  options.name = "fashion-mnist";
  options.classes = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                     "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  return load_idx(stem + "-images-idx3-ubyte.gz", stem + "-labels-idx1-ubyte.gz", options);
}

}  // namespace cosformer::data
