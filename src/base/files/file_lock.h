// One process at a time makes a file; others wait for it.
#pragma once

#include <string>

#include "base/files/file_descriptor.h"

namespace cosformer {

// Holds PATH.lock until the object or the process ends, whichever way. The lock's file stays. Where a file system has
// no locks, nothing is held: two processes may then do the same work, and the last one's file stays.
class FileLock {
 public:
  // Waits while another process holds it. Throws Failure when the lock's file cannot be made.
  explicit FileLock(const std::string& path);

  // What killed processes left behind of writing PATH with AtomicFile.
  void remove_leftovers() const;

 private:
  std::string path_;
  FileDescriptor file_;
};

}  // namespace cosformer
