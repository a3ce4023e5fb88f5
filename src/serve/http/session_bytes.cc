#include "serve/http/session_bytes.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/regular_file.h"
#include "base/formats/base64.h"
#include "serve/http/json_body.h"

namespace cosformer::serve {
namespace {

// A folder that nobody else sees, for a file that is gone at once.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "cosformer-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw Failure("no temporary folder can be made");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file() const { return path_ + "/state"; }

 private:
  std::string path_;
};

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

}  // namespace

std::string session_to_base64(const Session& session, const SessionOwner& owner) {
  const TemporaryFolder folder;
  save_session(folder.file(), session, owner);
  return to_base64(read_regular_file(folder.file(), kMostBytes));
}

Session session_from_base64(const std::string& text, const Generator& generator, const SessionOwner& owner) {
  const std::optional<std::string> bytes = from_base64(text);
  if (!bytes) throw bad_request("'state' must be what an answer with \"return_state\": true has given", "state");
  const TemporaryFolder folder;
  {
    std::ofstream file(folder.file(), std::ios::binary);
    file.write(bytes->data(), static_cast<std::streamsize>(bytes->size()));
    if (!file.flush()) throw Failure("there is no room for temporary files");
  }
  try {
    return load_session(folder.file(), generator.model(), owner);
  } catch (const UserError& error) {
    const std::string message = error.what();
    const std::size_t reason = message.find("continued: ");
    throw bad_request(
        fmt::format("'state' cannot be continued{}", reason == std::string::npos ? "" : message.substr(reason + 9)),
        "state");
  }
}

}  // namespace cosformer::serve
