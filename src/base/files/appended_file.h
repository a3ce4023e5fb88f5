// A regular file that grows by whole pieces: logs, metrics, events.
#pragma once

#include <string>
#include <string_view>

#include "base/files/file_descriptor.h"

namespace cosformer {

class AppendedFile {
 public:
  // Made when it is missing. Throws UserError when something else than a regular file is there, Failure when the system
  // fails.
  explicit AppendedFile(std::string path);

  // All of it or, on a full disk, nothing. Throws Failure.
  void append(std::string_view bytes);

 private:
  std::string path_;
  FileDescriptor file_;
};

}  // namespace cosformer
