// What the readers of images share: the description of a data set of gray images, and PNG files put into it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/dataset/row_report.h"

namespace cosformer::data {

DatasetInfo describe_images(std::string name, std::int64_t width, std::int64_t height,
                            std::vector<std::string> classes);

// Adds PNG files to a data set. The first image decides the size of all, unless it was said before.
class PngCollector {
 public:
  PngCollector(DatasetBuilder& builder, RowReporter& reporter, std::int64_t width = 0, std::int64_t height = 0)
      : builder_(builder), reporter_(reporter), size_given_(width > 0), width_(width), height_(height) {}

  // A file that is missing, not a PNG or of another size is a bad row; one without a byte is bad too unless
  // `empty_is_known`, when it is counted as such.
  void add(const std::string& path, std::int32_t label, bool empty_is_known = false);
  // Of what a file holds; throws UserError with the reason alone.
  void add_bytes(std::string_view bytes, std::int32_t label);

  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }

 private:
  DatasetBuilder& builder_;
  RowReporter& reporter_;
  bool size_given_;
  std::int64_t width_, height_;
};

}  // namespace cosformer::data
