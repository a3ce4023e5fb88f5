// The log of metrics after a kill, and the format of the event files.
#include "train/reports/metrics_log.h"

#include <bit>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file_fixture.h"

namespace cosformer::train {
namespace {

using cosformer::testing::read_bytes;
using cosformer::testing::TemporaryDirectory;

TEST(MetricsLog, LinesAfterTheCheckpointAndTornOnesGo) {
  const TemporaryDirectory run;
  {
    MetricsLog log(run.path(), 0);
    log.write(10, {{"loss", 0.5}, {"tokens", 100}});
    log.write(20, {{"loss", 1.0 / 3}});
    log.write(30, {{"loss", 0.25}});
  }
  cosformer::testing::write_bytes(run.file("metrics.jsonl"), read_bytes(run.file("metrics.jsonl")) + "{\"step\": 4");
  MetricsLog log(run.path(), 20);
  log.write(30, {{"loss", 0.125}});
  EXPECT_EQ(read_bytes(run.file("metrics.jsonl")),
            "{\"step\":10,\"loss\":0.5,\"tokens\":100}\n{\"step\":20,\"loss\":0.3333333333333333}\n"
            "{\"step\":30,\"loss\":0.125}\n");
}

TEST(EventFile, ChecksumIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
}

// Reads the records as the format says, with its own arithmetic.
TEST(EventFile, RecordsFrameProtocolBuffers) {
  const TemporaryDirectory folder;
  {
    EventFile events(folder.path(), 0);
    events.scalar(300, "loss", 0.5);
    events.flush();
  }
  const std::string bytes = read_bytes(folder.file(*folder.names().begin()));
  std::vector<std::string> records;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    for (const auto& [begin, size] : {std::pair<std::size_t, std::size_t>{at, 8}, {at + 12, length}}) {
      std::uint32_t stored = 0;
      std::memcpy(&stored, bytes.data() + begin + size, 4);
      const std::uint32_t crc = crc32c(std::string_view(bytes).substr(begin, size));
      EXPECT_EQ(stored, ((crc >> 15) | (crc << 17)) + 0xa282ead8U);
    }
    records.push_back(bytes.substr(at + 12, length));
    at += 12 + length + 4;
  }
  ASSERT_EQ(records.size(), 2U);
  EXPECT_NE(records[0].find("brain.Event:2"), std::string::npos);
  // Field 2 (step) = 300 as a varint; field 5 (summary) { field 1 (value) { 1: "loss", 2: 0.5f } }.
  const std::string value = std::string("\x0a\x04loss\x15", 7) + std::string("\x00\x00\x00\x3f", 4);
  const std::string summary = "\x0a" + std::string(1, static_cast<char>(value.size())) + value;
  const std::string tail = "\x10\xac\x02\x2a" + std::string(1, static_cast<char>(summary.size())) + summary;
  ASSERT_EQ(records[1].size(), 9 + tail.size());
  EXPECT_EQ(records[1].substr(9), tail);
}

}  // namespace
}  // namespace cosformer::train
