#include "data/readers/unpacked_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kLeastBlock = std::size_t{1} << 12, kGreatestBlock = std::size_t{1} << 18;
// Text packs to a third or a tenth of its size, long repetitions to a thousandth. Small files may be anything.
constexpr std::uint64_t kUsualUnpacking = 100, kSmall = std::uint64_t{256} << 20;
constexpr std::uint64_t kMostOfAPipe = std::uint64_t{1} << 30;

bool was_given_open(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

FileDescriptor opened(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait. What was given open has somebody.
  const int flags = was_given_open(path) ? 0 : O_NONBLOCK | O_NOCTTY;
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (file.is_open()) return file;
  switch (errno) {
    case ENOENT:
    case ENOTDIR: throw UserError(fmt::format("cannot read '{}': there is no such file; check the path", path));
    case EACCES: throw UserError(fmt::format("cannot read '{}': permission denied; make the file readable", path));
    case ENXIO: throw UserError(fmt::format("cannot read '{}': it is not a regular file; give the path of one", path));
    default: throw file_failure("open", path, errno);
  }
}

}  // namespace

OpenedFile open_for_reading(const std::string& path) {
  OpenedFile open{opened(path)};
  struct stat status {};
  if (::fstat(open.file.number(), &status) != 0) throw file_failure("examine", path, errno);
  if (S_ISDIR(status.st_mode))
    throw UserError(fmt::format("cannot read '{}': it is a folder; give the path of a file", path));
  open.is_regular = S_ISREG(status.st_mode);
  if (!open.is_regular && !was_given_open(path)) {
    throw UserError(
        fmt::format("cannot read '{}': it is not a regular file; give the path of one, or pipe its content in", path));
  }
  if (open.is_regular) open.size = static_cast<std::uint64_t>(status.st_size);
  return open;
}

struct UnpackedFile::Stream {
  gzFile file = nullptr;
  ~Stream() {
    if (file != nullptr) ::gzclose_r(file);
  }
};

UnpackedFile::UnpackedFile(const std::string& path) : path_(path), stream_(std::make_unique<Stream>()) {
  const OpenedFile open = open_for_reading(path);
  is_regular_ = open.is_regular;
  size_ = open.size;
  const int copy = ::dup(open.file.number());
  if (copy < 0) throw file_failure("open", path, errno);
  stream_->file = ::gzdopen(copy, "rb");
  if (stream_->file == nullptr) {
    ::close(copy);
    throw file_failure("open", path, ENOMEM);
  }
  // Folders of texts or images have tens of thousands of small files, for which large buffers would cost the most.
  const std::uint64_t block =
      is_regular_ ? std::clamp<std::uint64_t>(size_ + 1, kLeastBlock, kGreatestBlock) : kGreatestBlock;
  ::gzbuffer(stream_->file, static_cast<unsigned>(block));
}

UnpackedFile::~UnpackedFile() = default;

std::size_t UnpackedFile::read(char* to, std::size_t size) {
  std::size_t filled = 0;
  while (filled < size) {
    std::size_t asked = std::min<std::size_t>(size - filled, std::size_t{1} << 24);
    // A file that grows, or that the system makes up while it is read, is as long as it was when it was opened.
    if (is_regular_ && ::gzdirect(stream_->file) != 0) {
      asked = static_cast<std::size_t>(std::min<std::uint64_t>(asked, size_ - std::min(size_, unpacked_)));
      if (asked == 0) break;
    }
    const int got = ::gzread(stream_->file, to + filled, static_cast<unsigned>(asked));
    int code = Z_OK;
    ::gzerror(stream_->file, &code);
    if (code == Z_ERRNO) throw file_failure("read", path_, errno);
    if (got < 0 || code == Z_BUF_ERROR || code == Z_DATA_ERROR) {
      throw UserError(fmt::format("cannot read '{}': its gzip data is damaged or cut short; download it again", path_));
    }
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    unpacked_ += static_cast<std::uint64_t>(got);
    require_reasonable();
  }
  return filled;
}

void UnpackedFile::require_reasonable() const {
  if (!is_regular_) {
    if (unpacked_ <= kMostOfAPipe) return;
    throw UserError(fmt::format(
        "cannot read '{}': more than a gigabyte came through the pipe; write it to a file and give its path", path_));
  }
  if (unpacked_ <= kSmall || ::gzdirect(stream_->file) != 0) return;
  if (unpacked_ / kUsualUnpacking > consumed()) {
    throw UserError(
        fmt::format("cannot read '{}': it unpacks to more than {} times its own size, as text does not; if it is meant "
                    "so, unpack it (gunzip) and give the file that comes out",
                    path_, kUsualUnpacking));
  }
}

std::uint64_t UnpackedFile::consumed() const {
  return static_cast<std::uint64_t>(std::max<z_off_t>(::gzoffset(stream_->file), 0));
}

}  // namespace cosformer::data
