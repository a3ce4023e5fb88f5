#include "data/file_content.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kLeastBlock = std::size_t{1} << 12, kGreatestBlock = std::size_t{1} << 18;

struct GzipCloser {
  void operator()(gzFile file) const { ::gzclose_r(file); }
};

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
    throw UserError("cannot read the folder '" + folder + "': there is no such folder; check the path");
  }
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator items(folder, error);
  if (error) throw UserError("cannot read the folder '" + folder + "': " + error.message());
  for (const auto& item : items) {
    std::string name = item.path().filename().string();
    if (name.starts_with('.') || !name.ends_with(ending) || item.is_directory(error) != folders) continue;
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

}  // namespace

FileDescriptor open_for_reading(const std::string& path, int flags) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (!file.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) {
      throw UserError("cannot read '" + path + "': there is no such file; check the path");
    }
    if (errno == EACCES) throw UserError("cannot read '" + path + "': permission denied; make the file readable");
    throw file_failure("open", path, errno);
  }
  return file;
}

std::string read_content(const std::string& path) {
  const FileDescriptor file = open_for_reading(path);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) throw file_failure("examine", path, errno);
  if (S_ISDIR(status.st_mode)) throw UserError("cannot read '" + path + "': it is a folder; give the path of a file");

  const std::unique_ptr<gzFile_s, GzipCloser> stream(::gzdopen(::dup(file.number()), "rb"));
  if (!stream) throw file_failure("open", path, errno != 0 ? errno : ENOMEM);
  // Folders of texts or images have tens of thousands of small files, for which large buffers would cost the most.
  const bool size_known = S_ISREG(status.st_mode);
  const std::size_t expected = size_known ? static_cast<std::size_t>(status.st_size) + 1 : kGreatestBlock;
  const std::size_t block = std::clamp(expected, kLeastBlock, kGreatestBlock);
  ::gzbuffer(stream.get(), static_cast<unsigned>(block));
  std::string content;
  if (size_known) content.reserve(expected + block);
  for (;;) {
    const std::size_t filled = content.size();
    content.resize(filled + block);
    const int got = ::gzread(stream.get(), content.data() + filled, static_cast<unsigned>(block));
    content.resize(filled + static_cast<std::size_t>(std::max(got, 0)));
    int code = Z_OK;
    ::gzerror(stream.get(), &code);
    if (code == Z_ERRNO) throw file_failure("read", path, errno);
    if (got < 0 || code == Z_BUF_ERROR || code == Z_DATA_ERROR) {
      throw UserError("cannot read '" + path + "': its gzip data is damaged or cut short; download it again");
    }
    if (got == 0) return content;
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
