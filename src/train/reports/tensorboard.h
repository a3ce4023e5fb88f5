// Event files for TensorBoard, of scalars only.
//
// The format: records of length (u64), masked CRC-32C of the length, content, masked CRC-32C of the content; a content
// is a protocol buffer `Event {1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary, 7: SessionLog}`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/appended_file.h"

namespace cosformer::train {

class EventFile {
 public:
  // A new file in `folder`, which is made if needed. Events after `step` in older files there are void. Throws Failure.
  EventFile(const std::string& folder, std::int64_t step);

  // Kept in memory until flush().
  void scalar(std::int64_t step, const std::string& name, double value);
  // Throws Failure.
  void flush();

 private:
  void record(const std::string& content);
  std::optional<AppendedFile> file_;
  std::string pending_;
};

// The checksum of iSCSI and of these files.
std::uint32_t crc32c(std::string_view data);

}  // namespace cosformer::train
