// load_pathfinder_folder.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fmt/core.h>

#include "base/error.h"
#include "data/readers/delimited_text.h"
#include "data/readers/file_content.h"
#include "data/readers/images/image_readers.h"
#include "data/readers/images/image_sequence.h"

namespace cosformer::data {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::string_view kNumpyMagic = "\x93NUMPY";
constexpr std::size_t kSubfolder = 0, kFile = 1, kLabel = 3, kColumns = 4;

// The number that follows `key` in the header's text; 0 when there is none.
std::uint64_t number_after(std::string_view text, std::string_view key) {
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) return 0;
  std::uint64_t number = 0;
  const auto result = std::from_chars(text.data() + found + key.size(), text.data() + text.size(), number);
  return result.ec == std::errc{} ? number : 0;
}

// A saved two-dimensional array of unicode strings ('<U12'), as the published generator writes when it is run today.
Rows read_numpy_strings(const std::string& path, std::string_view content) {
  constexpr std::string_view kExpected = "; expected a NumPy array of strings, one row for each image";
  const auto refuse = [&](const std::string& reason) { refuse_file(path, reason + std::string(kExpected)); };
  if (content.size() < 12) refuse("it was cut short");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(content[i])); };
  const bool wide_length = byte(6) >= 2;
  const std::size_t begin = wide_length ? 12 : 10;
  std::size_t length = byte(8) + (byte(9) << 8);
  if (wide_length) length += (byte(10) << 16) + (byte(11) << 24);
  if (length > content.size() - begin) refuse("it was cut short");
  const std::string_view header = content.substr(begin, length), data = content.substr(begin + length);

  const std::uint64_t width = number_after(header, "'descr': '<U"), rows = number_after(header, "'shape': (");
  const std::size_t comma = header.find(',', std::min(header.find("'shape': ("), header.size()));
  const std::uint64_t columns = comma == std::string_view::npos ? 0 : number_after(header.substr(comma), ", ");
  const bool row_by_row = header.find("'fortran_order': False") != std::string_view::npos;
  if (width == 0 || rows == 0 || columns == 0 || !row_by_row) refuse("its header is not that of such an array");
  const std::uint64_t available = data.size() / 4;  // characters of four bytes
  // Divided, not multiplied: the product of three numbers from a file may leave 64 bits.
  if (rows > available / width / columns || rows * width * columns * 4 != data.size()) {
    refuse(fmt::format("its shape does not agree with its {} bytes of data", data.size()));
  }
  Rows result;
  const char* next = data.data();
  for (std::uint64_t row = 0; row < rows; ++row) {
    auto& fields = result.emplace_back();
    for (std::uint64_t column = 0; column < columns; ++column) {
      std::string field;
      for (std::uint64_t i = 0; i < width; ++i, next += 4) {
        std::uint32_t character = 0;
        std::memcpy(&character, next, 4);
        if (character != 0) field += character < 128 ? static_cast<char>(character) : '?';
      }
      fields.push_back(std::move(field));
    }
  }
  return result;
}

struct ListedImage {
  std::string path;
  std::int32_t label = 0;
};

// Throws UserError with the reason alone.
ListedImage parse_row(const std::string& folder, const std::vector<std::string>& fields) {
  if (fields.size() < kColumns) {
    throw UserError(fmt::format("it has {} fields; expected at least 4: folder, file, number, label", fields.size()));
  }
  const std::filesystem::path inside = std::filesystem::path(fields[kSubfolder]) / fields[kFile];
  for (const auto& part : inside) {
    if (part == ".." || inside.is_absolute() || inside.string().find('\0') != std::string::npos) {
      throw UserError(fmt::format("the image's path is {}; expected one inside the folder", excerpt(inside.string())));
    }
  }
  const std::string& label = fields[kLabel];
  if (label != "0" && label != "1") throw UserError(fmt::format("the label is {}; expected 0 or 1", excerpt(label)));
  return {folder + "/" + inside.string(), label[0] - '0'};
}

}  // namespace

Loaded load_pathfinder_folder(const std::string& folder, RowPolicy policy) {
  const std::string metadata = folder + "/metadata";
  std::vector<std::string> lists = names_in_folder(metadata, ".npy");
  for (std::string& name : names_in_folder(metadata, ".txt")) lists.push_back(std::move(name));
  if (lists.empty()) refuse_file(metadata, "it holds no list of images; expected .npy or .txt files");

  DatasetBuilder builder(ElementType::kU8);
  RowReporter reporter(policy);
  PngCollector images(builder, reporter);
  for (const std::string& name : lists) {
    const std::string list = metadata + "/" + name;
    const auto add_row = [&](const std::vector<std::string>& fields, std::uint64_t line) {
      ListedImage image;
      try {
        image = parse_row(folder, fields);
      } catch (const UserError& error) {
        return reporter.bad(list, "line", line, error.what());
      }
      images.add(image.path, image.label, true);
    };
    const std::string content = read_content(list);
    if (content.starts_with(kNumpyMagic)) {
      std::uint64_t line = 0;
      for (const auto& fields : read_numpy_strings(list, content)) add_row(fields, ++line);
    } else {
      DelimitedText rows(content, ' ', Quoting::kNone);
      for (DelimitedText::Row row; rows.next(row);) add_row(row.fields, row.line);
    }
  }
  return reporter.finish(
      folder, builder,
      describe_images("pathfinder", images.width(), images.height(), {"different paths", "same path"}));
}

}  // namespace cosformer::data
