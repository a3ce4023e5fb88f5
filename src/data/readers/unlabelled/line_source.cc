#include "data/readers/unlabelled/line_source.h"

#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "data/readers/unpacked_file.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kAtOnce = std::size_t{1} << 20;
constexpr std::size_t kMostLine = std::size_t{1} << 28;
constexpr std::string_view kGzip = "\x1f\x8b";

FileDescriptor opened(const std::string& path) {
  if (path != "-") return open_for_reading(path).file;
  FileDescriptor file(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  if (!file.is_open()) throw UserError("cannot read standard input: it is closed; give a file with --input");
  return file;
}

}  // namespace

struct LineSource::Unpacking {
  Unpacking() {
    constexpr int kGzipOnly = 16;
    if (::inflateInit2(&stream, kGzipOnly + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Unpacking() { ::inflateEnd(&stream); }
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;

  z_stream stream{};
  bool between_members = false;
};

LineSource::LineSource(const std::string& path) : path_(path == "-" ? "standard input" : path), file_(opened(path)) {}

LineSource::~LineSource() = default;

bool LineSource::is_more_there() const {
  pollfd wanted{file_.number(), POLLIN, 0};
  return ::poll(&wanted, 1, 0) > 0;
}

void LineSource::add(std::string_view piece) {
  if (!unpacking_) {
    waiting_ += piece;
    return;
  }
  z_stream& stream = unpacking_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
  stream.avail_in = static_cast<uInt>(piece.size());
  std::array<char, std::size_t{1} << 16> block{};
  do {
    if (unpacking_->between_members && stream.avail_in > 0) {
      ::inflateReset(&stream);
      unpacking_->between_members = false;
    }
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const int code = ::inflate(&stream, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      throw UserError(fmt::format("cannot read '{}': its gzip data is damaged or cut short; download it again", path_));
    }
    waiting_.append(block.data(), block.size() - stream.avail_out);
    unpacking_->between_members = code == Z_STREAM_END;
  } while (stream.avail_in > 0 || stream.avail_out == 0);
}

void LineSource::read_some() {
  std::array<char, std::size_t{1} << 16> block{};
  ssize_t got = 0;
  do {
    got = ::read(file_.number(), block.data(), block.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw file_failure("read", path_, errno);
  if (got == 0) {
    ended_ = true;
    if (unpacking_ && !unpacking_->between_members) {
      throw UserError(fmt::format("cannot read '{}': its gzip data is damaged or cut short; download it again", path_));
    }
    return;
  }
  add({block.data(), static_cast<std::size_t>(got)});
  if (!begun_ && waiting_.size() >= kGzip.size()) {
    begun_ = true;
    if (waiting_.starts_with(kGzip)) {
      unpacking_ = std::make_unique<Unpacking>();
      add(std::exchange(waiting_, {}));
    }
  }
}

std::string LineSource::next() {
  while (!ended_ && waiting_.size() < kAtOnce && (waiting_.find('\n') == std::string::npos || is_more_there())) {
    read_some();
  }
  std::size_t end = waiting_.rfind('\n');
  while (!ended_ && end == std::string::npos) {
    if (waiting_.size() > kMostLine) {
      throw UserError(fmt::format("cannot read '{}': it has a line of more than {} MB; expected one input a line",
                                  path_, kMostLine >> 20));
    }
    const std::size_t before = waiting_.size();
    read_some();
    end = waiting_.find('\n', before);
  }
  const std::size_t size = end == std::string::npos ? waiting_.size() : end + 1;
  begun_ = true;
  std::string lines = waiting_.substr(0, size);
  waiting_.erase(0, size);
  return lines;
}

}  // namespace cosformer::data
