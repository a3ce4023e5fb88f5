// What somebody else may have put in the place of a file, and texts made to break their readers: each ends at once with
// a clear error.
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "base/file_size_limit.h"
#include "base/files/appended_file.h"
#include "base/files/regular_file.h"
#include "base/formats/json_text.h"
#include "base/formats/toml_values.h"
#include "base/settings.h"
#include "base/watchdog.h"
#include "data/file_mutation.h"

namespace cosformer {
namespace {

using ::testing::IsSubstring;
using testing::message_of;
using testing::read_bytes;
using testing::TemporaryDirectory;
using testing::Watchdog;
using testing::write_bytes;

std::string repeated(const std::string& piece, std::size_t times) {
  std::string text;
  for (std::size_t at = 0; at < times; ++at) text += piece;
  return text;
}

TEST(RegularFile, PipesDevicesAndFoldersAreRefusedAtOnce) {
  const TemporaryDirectory directory;
  Watchdog watchdog(10);
  watchdog.begin(0, 0);
  ASSERT_EQ(::mkfifo(directory.file("pipe").c_str(), 0600), 0);
  for (const std::string& path : {directory.file("pipe"), std::string("/dev/zero"), std::string("/dev/tty")}) {
    EXPECT_NE(message_of<std::runtime_error>([&] { read_regular_file(path, 100); }), "(nothing was thrown)") << path;
    EXPECT_THROW(toml_values_of_file(path), std::runtime_error) << path;
  }
  EXPECT_PRED_FORMAT2(IsSubstring, "not a regular file",
                      message_of<UserError>([&] { read_regular_file(directory.file("pipe"), 100); }));
  EXPECT_PRED_FORMAT2(IsSubstring, "it is a directory",
                      message_of<UserError>([&] { read_regular_file(directory.path(), 100); }));
  // What the system makes up while it is read, without an end that could be known: empty.
  EXPECT_EQ(read_regular_file("/proc/self/maps", 100), "");
}

TEST(RegularFile, OneThatIsTooLargeIsNotRead) {
  const TemporaryDirectory directory;
  write_bytes(directory.file("a"), "some text");
  EXPECT_EQ(read_regular_file(directory.file("a"), 9), "some text");
  EXPECT_PRED_FORMAT2(IsSubstring, "it has 9 bytes, and a result has at most 8",
                      message_of<UserError>([&] { read_regular_file(directory.file("a"), 8, "a result"); }));
  std::filesystem::resize_file(directory.file("a"), std::uintmax_t{1} << 40);  // without taking room on the disk
  EXPECT_THROW(toml_values_of_file(directory.file("a")), UserError);
}

TEST(RegularFile, OneThatIsCutShortIsAFailureWhereItIsRead) {
  const TemporaryDirectory directory;
  write_bytes(directory.file("a"), std::string(100'000, 'x'));
  const RegularFile file(directory.file("a"));
  std::filesystem::resize_file(directory.file("a"), 10);
  std::string bytes(50'000, '\0');
  EXPECT_PRED_FORMAT2(IsSubstring, "became shorter",
                      message_of<Failure>([&] { file.read(40'000, bytes.data(), bytes.size()); }));
}

TEST(AppendedFile, AFullDiskIsNamedAndTakesNothing) {
  const TemporaryDirectory directory;
  AppendedFile file(directory.file("log"));
  file.append(std::string(900, 'a') + '\n');
  std::string message;
  {
    const testing::FileSizeLimit limit(1000);
    errno = ENOTTY;  // left by something else
    message = message_of<Failure>([&] { file.append(std::string(900, 'b') + '\n'); });
  }
  EXPECT_PRED_FORMAT2(IsSubstring, "File too large", message);
  EXPECT_PRED_FORMAT2(IsSubstring, directory.file("log"), message);
  EXPECT_EQ(read_bytes(directory.file("log")).size(), 901U);
  file.append("c\n");
  EXPECT_TRUE(read_bytes(directory.file("log")).ends_with("a\nc\n"));
  EXPECT_PRED_FORMAT2(IsSubstring, "not a regular file", message_of<UserError>([] { AppendedFile full("/dev/full"); }));
  ASSERT_EQ(::mkfifo(directory.file("pipe").c_str(), 0600), 0);
  EXPECT_PRED_FORMAT2(IsSubstring, "not a regular file",
                      message_of<UserError>([&] { AppendedFile pipe(directory.file("pipe")); }));
}

TEST(WriteAll, SaysNoSpaceOfADeviceWithoutAny) {
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.is_open());
  errno = ENOTTY;
  EXPECT_EQ(write_all(full, "x", 1), ENOSPC);
}

// A pipe takes what there is room for: the rest is written when there is room again.
TEST(WriteAll, GoesOnAfterAShortWrite) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor reading(ends[0]), writing(ends[1]);
  const std::string sent(300'000, 'x');
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(write_all(writing, sent.data(), sent.size()));
  std::size_t received = 0;
  std::string block(1000, '\0');
  while (received < sent.size()) {
    const ssize_t got = ::read(reading.number(), block.data(), block.size());
    ASSERT_GT(got, 0);
    received += static_cast<std::size_t>(got);
  }
  EXPECT_EQ(received, sent.size());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Toml, KeysOfAHundredThousandPartsAreAnError) {
  const std::string parts = repeated("a.", 100'000) + "a";
  const std::vector<std::string> texts = {
      "x = 1\n" + parts + " = 1\n",
      "[" + parts + "]\nb = 1\n",
      "[[" + parts + "]]\nb = 1\n",
      "x = {" + parts + " = 1}\n",
      repeated("\"a\" . ", 100'000) + "b = 1\n",
      "a = " + repeated("[", 100'000),
      "a = " + repeated("{a=", 100'000),
      "a = " + repeated("{a.b.c.d.e.f.g.h=", 200) + "1" + repeated("}", 200),
  };
  Watchdog watchdog(20);
  for (std::size_t at = 0; at < texts.size(); ++at) {
    watchdog.begin(0, at);
    const std::string message = message_of<UserError>([&] { toml_values(texts[at], "f.toml"); });
    EXPECT_PRED_FORMAT2(IsSubstring, "f.toml", message);
    EXPECT_LT(message.size(), 1000U);
  }
  EXPECT_PRED_FORMAT2(IsSubstring, "f.toml:2: a key of more than 16 parts",
                      message_of<UserError>([&] { toml_values(texts[0], "f.toml"); }));
  // Dots elsewhere are none of keys.
  const std::string dots = repeated(".", 1000);
  EXPECT_EQ(toml_values("a = \"" + dots + "\\\"" + dots + "\" # " + dots + "\nb = '''\n" + dots + "''" + dots +
                            "'''\n# \"" + dots + "\n\"" + dots + "\" = 1\nc = [1.5, 2.5, 3.5]\n",
                        "f")
                .size(),
            4U);
}

TEST(Json, NestedDeeplyIsAnError) {
  Watchdog watchdog(20);
  watchdog.begin(0, 0);
  for (const std::string& text :
       {repeated("[", 100'000) + repeated("]", 100'000), repeated("{\"a\":", 100'000) + "1" + repeated("}", 100'000)}) {
    EXPECT_PRED_FORMAT2(IsSubstring, "nested deeper than 64",
                        message_of<UserError>([&] { parse_json(text, "r.json"); }));
    EXPECT_PRED_FORMAT2(IsSubstring, "nested deeper than 64",
                        message_of<UserError>([&] { parse_json<nlohmann::ordered_json>(text, "r.json"); }));
  }
  EXPECT_EQ(parse_json(repeated("[", 60) + repeated("]", 60), "r.json").size(), 1U);
}

TEST(Json, NumbersOfOtherTypesAreNamed) {
  const auto object =
      parse_json(R"({"a": "x", "b": 1e300, "c": 18446744073709551615, "d": -1, "e": null, "f": 7})", "r");
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    EXPECT_PRED_FORMAT2(IsSubstring, std::string("'r' is not as it was written: '") + key + "' must be a whole number",
                        message_of<UserError>([&] { json_whole(object, key, 0, "r"); }));
  }
  EXPECT_EQ(json_whole(object, "f", 0, "r"), 7);
  EXPECT_EQ(json_whole(object, "g", 3, "r"), 3);
  EXPECT_THROW(json_number(object, "a", 0, "r"), UserError);
  EXPECT_TRUE(std::isnan(json_number(object, "e", 0, "r")));
  EXPECT_EQ(json_number(object, "b", 0, "r"), 1e300);
  EXPECT_THROW(json_string(object, "f", "", "r"), UserError);
}

// A thousand times each: it is read or refused, with a message of a bearable length.
TEST(Settings, DamagedTomlIsReadOrRefused) {
  const auto seed =
      static_cast<std::uint32_t>(testing::from_environment("COSFORMER_FUZZ_SEED", std::random_device{}()));
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  const std::string good =
      "[train]\nlr = 0.001\nsteps = 1000\nschedule = \"cosine\"\nflag = true\nnames = [\"a\", \"b.c\"]\n"
      "[data]\npath = 'C:\\x'\nseed = 0\n[[cell]]\nname = \"x\"\n";
  Watchdog watchdog(10);
  unsigned long read = 0, refused = 0;
  const unsigned long rounds = testing::from_environment("COSFORMER_FUZZ_ROUNDS", 5000);
  for (unsigned long round = 0; round < rounds; ++round) {
    watchdog.begin(seed, round);
    const std::string text = testing::mutated(good, random);
    try {
      const std::vector<TomlValue> values = toml_values(text, "f.toml");
      double lr = 0;
      std::int64_t steps = 0, number = 0;
      std::string schedule, path;
      std::vector<std::string> names;
      bool flag = false;
      Settings settings;
      settings.add("train.lr", lr, "h", 0, 1);
      settings.add("train.steps", steps, "h", 0, 5000);
      settings.add("train.schedule", schedule, "h", {"cosine", "linear"});
      settings.add("train.flag", flag, "h");
      settings.add("train.names", names, "h");
      settings.add("data.path", path, "h");
      settings.add("data.seed", number, "h");
      std::string name;
      settings.add("cell[0].name", name, "h");
      settings.read_values(values);
      EXPECT_LE(steps, 5000);
      ++read;
    } catch (const UserError& error) {
      ASSERT_LT(std::string(error.what()).size(), 1500U);
      ++refused;
    }
  }
  EXPECT_GT(read, 0U);
  EXPECT_GT(refused, 0U);
}

TEST(Settings, ALongUnknownKeyIsRefusedQuickly) {
  Watchdog watchdog(10);
  watchdog.begin(0, 0);
  std::int64_t value = 0;
  Settings settings;
  settings.add("train.steps", value, "h");
  const std::string message = message_of<UserError>([&] { settings.set(std::string(10'000'000, 'k'), "1", "--set"); });
  EXPECT_PRED_FORMAT2(IsSubstring, "there is no setting 'kkk", message);
  EXPECT_LT(message.size(), 1000U);
}

}  // namespace
}  // namespace cosformer
