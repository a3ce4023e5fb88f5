// Writing a file so that its path shows either the old content or the whole new content, never a part.
//
// The bytes go to a hidden temporary beside the target (".NAME.<random>.tmp", mode 0644 less the umask). commit()
// brings them to the disk, renames the temporary over the target and brings the rename to the disk. On an error, or
// when the object goes away without commit(), the temporary is removed and the target stays as it was. A killed process
// may leave its temporary behind; it is safe to delete.
//
// Not for pipes, devices or appending: a target that exists must be a regular file. A symbolic link is replaced, not
// followed. One thread at a time.
#pragma once

#include <cstddef>
#include <string>

#include "base/files/file_descriptor.h"

namespace cosformer {

class AtomicFile {
 public:
  // Throws UserError when the path cannot be a file's (empty, a directory, no such folder), else Failure.
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Appends. Throws Failure (a full disk, an exceeded limit), after which the temporary is gone.
  void write(const void* data, std::size_t size);

  // To be called once, last. Throws Failure.
  void commit();

 private:
  [[noreturn]] void fail(const std::string& action, int error_number);
  void discard() noexcept;
  void require_open() const;

  std::string path_;
  std::string directory_;
  std::string temporary_path_;
  FileDescriptor file_;
  bool temporary_exists_ = false;
};

// Removes the temporaries that killed processes have left beside `path`. Only for who knows that no other process is
// writing `path` now.
void remove_temporaries(const std::string& path);

// Throws what an AtomicFile of this path would: a path that cannot be written is no news after an hour of work.
void require_writable(const std::string& path);

}  // namespace cosformer
