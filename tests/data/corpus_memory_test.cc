// The remembered hashes of files: slow, because fresh files are not trusted for three seconds.
#include <chrono>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file_fixture.h"
#include "data/corpus/corpus_files.h"

namespace cosformer::data {
namespace {

using cosformer::testing::read_bytes;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;

TEST(CorpusMemory, HashesAreRememberedUntilTheFileChanges) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("a.txt");
  write_bytes(file, "some text");
  int hashings = 0;
  CorpusOptions options;
  options.progress = [&](const std::string&) {
    ++hashings;
    return Progress();
  };
  const auto hash = [&] { return hash_files({file}, directory.path(), options).at(0).hash; };
  const std::string first = hash();
  EXPECT_EQ(hash(), first);
  EXPECT_EQ(hashings, 2);  // too fresh to be trusted
  std::this_thread::sleep_for(std::chrono::milliseconds(3300));
  EXPECT_EQ(hash(), first);
  EXPECT_EQ(hashings, 3);
  EXPECT_EQ(hash(), first);
  EXPECT_EQ(hashings, 3);  // remembered

  // The same size and, by hand, the same time of modification.
  struct stat before {};
  ASSERT_EQ(::stat(file.c_str(), &before), 0);
  write_bytes(file, "same size");
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  EXPECT_NE(hash(), first);
  EXPECT_EQ(hashings, 4);
  write_bytes(file, "some text");
  EXPECT_EQ(hash(), first);

  // A memory that cannot be read is none.
  for (const char* nonsense : {"", "{", "[]", "{\"files\": 3}", "{\"files\": {\"a\": {\"size\": -1}}}"}) {
    write_bytes(directory.file("files.json"), nonsense);
    EXPECT_EQ(hash(), first);
  }
}

}  // namespace
}  // namespace cosformer::data
