// The files of a corpus: which they are, and what they hold as a hash.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/corpus/corpus.h"

namespace cosformer::data {

// What a file system says about a file: as long as it says the same, the content is the same.
struct FileStamp {
  std::uint64_t size = 0, device = 0, inode = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

// Throws UserError when there is no such file.
FileStamp file_stamp(const std::string& path);

struct HashedFile {
  std::string path;
  FileStamp stamp;
  std::string hash;  // of the content: SHA-256 over the SHA-256 of each 4 MB
};

// Hashes files, and remembers the hashes in FOLDER/files.json. A remembered hash is used again while the file's stamp
// is the same; a stamp that was fresh when the file was read is not trusted, because a second change within the clock's
// step would not show.
std::vector<HashedFile> hash_files(const std::vector<std::string>& paths, const std::string& folder,
                                   const CorpusOptions& options);

}  // namespace cosformer::data
