#include "base/files/atomic_file.h"

#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.h"
#include "file_fixture.h"
#include "file_size_limit.h"

namespace cosformer {
namespace {

using testing::FileSizeLimit;
using ::testing::IsSubstring;
using testing::message_of;
using testing::read_bytes;
using testing::TemporaryDirectory;
using testing::write_bytes;

using Names = std::set<std::string>;

void write_text(AtomicFile& file, const std::string& text) {
  file.write(text.data(), text.size());
}

// Restores the process's umask.
class Umask {
 public:
  explicit Umask(mode_t mask) : former_(::umask(mask)) {}
  ~Umask() { ::umask(former_); }

 private:
  mode_t former_;
};

TEST(AtomicFile, TheTargetAppearsWholeAtCommit) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("weights");
  AtomicFile file(path);
  write_text(file, "first ");
  write_text(file, "second");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(directory.names().size(), 1U);
  file.commit();
  EXPECT_EQ(read_bytes(path), "first second");
  EXPECT_EQ(directory.names(), Names{"weights"});
}

TEST(AtomicFile, AnOldFileStaysUntilCommitAndIsThenReplaced) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("weights");
  write_bytes(path, "a longer old content");
  AtomicFile file(path);
  write_text(file, "new");
  EXPECT_EQ(read_bytes(path), "a longer old content");
  file.commit();
  EXPECT_EQ(read_bytes(path), "new");
}

TEST(AtomicFile, WithoutCommitNothingChangesAndNothingIsLeft) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("weights");
  write_bytes(path, "old");
  {
    AtomicFile file(path);
    write_text(file, "new");
  }
  EXPECT_EQ(read_bytes(path), "old");
  EXPECT_EQ(directory.names(), Names{"weights"});
}

TEST(AtomicFile, TwoWritersOfOnePathDoNotMix) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("weights");
  AtomicFile first(path), second(path);
  write_text(first, "first");
  write_text(second, "second");
  first.commit();
  EXPECT_EQ(read_bytes(path), "first");
  second.commit();
  EXPECT_EQ(read_bytes(path), "second");
  EXPECT_EQ(directory.names(), Names{"weights"});
}

TEST(AtomicFile, ModeIs0644LessTheUmask) {
  const TemporaryDirectory directory;
  for (const mode_t mask : {022, 027, 077, 0}) {
    const Umask umask(mask);
    AtomicFile file(directory.file("weights"));
    file.commit();
    struct stat status {};
    ASSERT_EQ(::stat(directory.file("weights").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0644 & ~mask);
  }
}

TEST(AtomicFile, AFailedWriteNamesPathAndReasonAndLeavesNothing) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("weights");
  write_bytes(path, "old");
  std::string message;
  {
    AtomicFile file(path);
    const std::string large(10000, 'x');
    const FileSizeLimit limit(4096);
    message = message_of<Failure>([&] { write_text(file, large); });
    EXPECT_EQ(directory.names(), Names{"weights"}) << "removed at the failure, not only at the end";
    EXPECT_THROW(file.commit(), std::logic_error);
  }
  EXPECT_EQ(message, "cannot write '" + path + "': File too large");
  EXPECT_EQ(read_bytes(path), "old");
}

TEST(AtomicFile, AFailedRenameLeavesNothing) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("weights");
  AtomicFile file(path);
  std::filesystem::create_directory(path);  // in the way only after the writer began
  EXPECT_PRED_FORMAT2(IsSubstring, "'" + path + "': Is a directory", message_of<Failure>([&] { file.commit(); }));
  EXPECT_EQ(directory.names(), Names{"weights"});
}

TEST(AtomicFile, IsSpentAfterCommit) {
  const TemporaryDirectory directory;
  AtomicFile file(directory.file("weights"));
  file.commit();
  EXPECT_THROW(file.commit(), std::logic_error);
  EXPECT_THROW(write_text(file, "more"), std::logic_error);
}

TEST(AtomicFile, ARelativePathAndALongNameWork) {
  const TemporaryDirectory directory;
  const auto former = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  const std::string name(255, 'n');  // the longest there is: the temporary's name must still fit
  {
    AtomicFile file(name);
    file.commit();
  }
  std::filesystem::current_path(former);
  EXPECT_EQ(directory.names(), Names{name});
}

TEST(AtomicFile, RefusesPathsThatCannotBeAFile) {
  const TemporaryDirectory directory;
  const auto refusal = [](const std::string& path) { return message_of<UserError>([&] { AtomicFile file(path); }); };
  EXPECT_PRED_FORMAT2(IsSubstring, "does not end in a file name", refusal(""));
  EXPECT_PRED_FORMAT2(IsSubstring, "does not end in a file name", refusal(directory.path() + "/"));
  EXPECT_PRED_FORMAT2(IsSubstring, "does not end in a file name", refusal(".."));
  EXPECT_PRED_FORMAT2(IsSubstring, "zero byte", refusal(std::string("a\0b", 3)));
  EXPECT_PRED_FORMAT2(IsSubstring, "'" + directory.path() + "': it is a directory", refusal(directory.path()));
  EXPECT_PRED_FORMAT2(IsSubstring, "'/dev/null': it is not a regular file", refusal("/dev/null"));
  EXPECT_PRED_FORMAT2(IsSubstring, "does not exist; create it first", refusal(directory.file("missing/weights")));
  EXPECT_EQ(directory.names(), Names{});
}

TEST(AtomicFile, ANameTooLongFailsBeforeAnyWriting) {
  const TemporaryDirectory directory;
  const std::string path = directory.file(std::string(256, 'n'));
  EXPECT_PRED_FORMAT2(IsSubstring, "': File name too long", message_of<Failure>([&] { AtomicFile file(path); }));
  EXPECT_EQ(directory.names(), Names{});
}

}  // namespace
}  // namespace cosformer
