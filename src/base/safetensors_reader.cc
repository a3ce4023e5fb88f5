// safetensors::Reader: opening, bounds, streaming. The header's content is checked in safetensors_header.cc.
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <numeric>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/safetensors.h"
#include "base/safetensors_header.h"

namespace cosformer::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie in the file");

constexpr std::size_t kBlockBytes = std::size_t{8} << 20;

FileDescriptor open_regular_file(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    throw UserError("cannot read a file whose path holds a zero byte; give a path without it");
  }
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait; it changes nothing for a regular file.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) {
    switch (errno) {
      case ENOENT:
      case ENOTDIR: throw UserError("cannot read '" + path + "': there is no such file; check the path");
      case EACCES:
      case EPERM: throw UserError("cannot read '" + path + "': permission denied; make the file readable");
      default: throw file_failure("open", path, errno);
    }
  }
  return file;
}

std::uint64_t regular_file_size(const FileDescriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) throw file_failure("examine", path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw UserError("cannot read '" + path + "': it is " +
                    (S_ISDIR(status.st_mode) ? "a directory" : "not a regular file") +
                    "; give the path of a .safetensors file");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

void read_at(const FileDescriptor& file, const std::string& path, std::uint64_t position, void* destination,
             std::size_t size) {
  char* next = static_cast<char*>(destination);
  while (size > 0) {
    const ssize_t got = ::pread(file.number(), next, std::min(size, kBlockBytes), static_cast<off_t>(position));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_failure("read", path, errno);
    if (got == 0) {
      throw Failure("cannot read '" + path + "': it became shorter while it was being read; try again when nothing " +
                    "writes to it");
    }
    next += got;
    position += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
}

std::uint64_t read_header_length(const FileDescriptor& file, const std::string& path, std::uint64_t file_size) {
  if (file_size < kLengthBytes) {
    refuse_file(path, "it has " + std::to_string(file_size) + " bytes; expected at least " +
                          std::to_string(kLengthBytes) + ", the header's length");
  }
  std::array<unsigned char, kLengthBytes> bytes{};
  read_at(file, path, 0, bytes.data(), bytes.size());
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::uint64_t{bytes[i]} << (8 * i);
  if (length > kMaxHeaderBytes) {
    refuse_file(path, "it announces a header of " + std::to_string(length) + " bytes; expected at most " +
                          std::to_string(kMaxHeaderBytes));
  }
  if (length > file_size - kLengthBytes) {
    refuse_file(path, "it announces a header of " + std::to_string(length) + " bytes, but only " +
                          std::to_string(file_size - kLengthBytes) + " follow: it was cut short");
  }
  return length;
}

}  // namespace

Reader::Reader(std::string path) : path_(std::move(path)), file_(open_regular_file(path_)) {
  const std::uint64_t file_size = regular_file_size(file_, path_);
  const std::uint64_t header_length = read_header_length(file_, path_, file_size);
  data_begin_ = kLengthBytes + header_length;
  data_size_ = file_size - data_begin_;

  std::string text(header_length, '\0');
  read_at(file_, path_, kLengthBytes, text.data(), text.size());
  Header header = parse_header(text, data_size_, path_);
  entries_ = std::move(header.entries);
  metadata_ = std::move(header.metadata);

  by_name_.resize(entries_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::size_t a, std::size_t b) { return entries_[a].name < entries_[b].name; });
}

const Entry* Reader::find(std::string_view name) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                      [&](std::size_t i, std::string_view n) { return entries_[i].name < n; });
  if (found == by_name_.end() || entries_[*found].name != name) return nullptr;
  return &entries_[*found];
}

void Reader::read(const Entry& entry, void* destination, std::size_t size) const {
  if (size != entry.size()) {
    throw UserError("cannot read tensor " + in_quotes(entry.name) + " of '" + path_ + "' into " + std::to_string(size) +
                    " bytes; expected " + std::to_string(entry.size()) + ", " + std::string(name_of(entry.dtype)) +
                    " of shape " + text_of(entry.shape));
  }
  read_part(entry, 0, destination, size);
}

void Reader::read_part(const Entry& entry, std::uint64_t offset, void* destination, std::size_t size) const {
  // The entry's own bounds are checked too: it may come from another file.
  if (entry.begin > entry.end || entry.end > data_size_ || offset > entry.size() || size > entry.size() - offset) {
    throw UserError("cannot read " + std::to_string(size) + " bytes from byte " + std::to_string(offset) +
                    " on of tensor " + in_quotes(entry.name) + " of '" + path_ + "': the tensor there has " +
                    std::to_string(entry.size()) + "; ask for a part inside it");
  }
  read_at(file_, path_, data_begin_ + entry.begin + offset, destination, size);
}

}  // namespace cosformer::safetensors
