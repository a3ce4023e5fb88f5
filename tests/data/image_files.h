// Image files made by tests, byte by byte where the format allows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <png.h>

namespace cosformer::testing {

inline std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

inline std::string idx_bytes(const std::vector<std::uint32_t>& shape, const std::string& data) {
  std::string bytes{0, 0, 8, static_cast<char>(shape.size())};
  for (const std::uint32_t dimension : shape) bytes += big_endian(dimension);
  return bytes + data;
}

// `format` is one of libpng's, PNG_FORMAT_GRAY or PNG_FORMAT_RGB.
inline std::string png_bytes(std::uint32_t width, std::uint32_t height, std::uint32_t format,
                             const std::vector<std::uint8_t>& samples) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  std::string bytes(100000, '\0');
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, samples.data(), 0, nullptr) == 0) return {};
  bytes.resize(size);
  return bytes;
}

// A saved NumPy array of unicode strings of 12 characters.
inline std::string numpy_strings(const std::vector<std::vector<std::string>>& rows) {
  std::string header = "{'descr': '<U12', 'fortran_order': False, 'shape': (" + std::to_string(rows.size()) + ", " +
                       std::to_string(rows.at(0).size()) + "), }";
  header.resize(117, ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += '\1';
  bytes += '\0';
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  bytes += header;
  for (const auto& row : rows) {
    for (const std::string& field : row) {
      for (std::size_t i = 0; i < 12; ++i) {
        bytes += i < field.size() ? field[i] : '\0';
        bytes += std::string(3, '\0');
      }
    }
  }
  return bytes;
}

}  // namespace cosformer::testing
