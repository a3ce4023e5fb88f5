#include "data/readers/file_content.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "base/error.h"
#include "data/readers/unpacked_file.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Runs of digits compare by value; equal values fall back to the text, so that the order is total.
bool natural_less(const std::string& a, const std::string& b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i, ++j;
      continue;
    }
    while (i < a.size() && a[i] == '0') ++i;
    while (j < b.size() && b[j] == '0') ++j;
    const std::size_t begin_a = i, begin_b = j;
    while (i < a.size() && is_digit(a[i])) ++i;
    while (j < b.size() && is_digit(b[j])) ++j;
    if (i - begin_a != j - begin_b) return i - begin_a < j - begin_b;
    const int order = a.compare(begin_a, i - begin_a, b, begin_b, j - begin_b);
    if (order != 0) return order < 0;
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;
}

std::vector<std::string> sorted_names(const std::string& folder, std::string_view ending, bool folders) {
  if (!is_folder(folder)) {
    throw UserError(fmt::format("cannot read the folder '{}': there is no such folder; check the path", folder));
  }
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator items(folder, error);
  if (error) throw UserError(fmt::format("cannot read the folder '{}': {}", folder, error.message()));
  for (const auto& item : items) {
    std::string name = item.path().filename().string();
    if (name.starts_with('.') || !name.ends_with(ending) || item.is_directory(error) != folders) continue;
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

}  // namespace

std::string read_content(const std::string& path) {
  UnpackedFile file(path);
  std::string content;
  // Room for all of a file that is not packed, and for one byte more, by which the end is found.
  content.reserve(static_cast<std::size_t>(file.size()) + kBlock);
  for (std::size_t block = std::min<std::size_t>(kBlock, static_cast<std::size_t>(file.size()) + 1);;) {
    if (file.size() == 0) block = kBlock;
    const std::size_t filled = content.size();
    content.resize(filled + block);
    const std::size_t got = file.read(content.data() + filled, block);
    content.resize(filled + got);
    if (got < block) return content;
    block = kBlock;
  }
}

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::vector<std::string> names_in_folder(const std::string& folder, std::string_view ending) {
  return sorted_names(folder, ending, false);
}

std::vector<std::string> folders_in_folder(const std::string& folder) {
  return sorted_names(folder, "", true);
}

}  // namespace cosformer::data
