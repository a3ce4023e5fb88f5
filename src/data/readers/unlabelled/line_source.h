// Lines of a file, a pipe or a terminal as they come, unpacked when they are gzip: for answers that do not wait for the
// end of what is asked. Whole files in memory: file_content.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/files/file_descriptor.h"

namespace cosformer::data {

class LineSource {
 public:
  // "-" is standard input. Throws UserError when the path cannot be read.
  explicit LineSource(const std::string& path);
  ~LineSource();

  // Whole lines, up to about a megabyte of them: those that are there, after waiting for the first one; the last may
  // lack its newline. Empty at the end. Throws UserError for damaged gzip and for a line that is too long to be one,
  // Failure when the system fails.
  std::string next();

 private:
  struct Unpacking;

  bool is_more_there() const;
  void read_some();
  void add(std::string_view piece);

  std::string path_;
  FileDescriptor file_;
  std::unique_ptr<Unpacking> unpacking_;  // of gzip
  std::string waiting_;                   // read, and not given yet
  bool begun_ = false, ended_ = false;
};

}  // namespace cosformer::data
