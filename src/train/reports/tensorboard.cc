#include "train/reports/tensorboard.h"

#include <array>
#include <bit>
#include <chrono>
#include <filesystem>

#include "base/error.h"

namespace cosformer::train {
namespace {

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0U);
    table[byte] = value;
  }
  return table;
}();

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t at = 0; at < sizeof(value); ++at) bytes += static_cast<char>((value >> (8 * at)) & 0xff);
  return bytes;
}

std::string masked_crc(std::string_view data) {
  const std::uint32_t crc = crc32c(data);
  return little_endian<std::uint32_t>(std::rotr(crc, 15) + 0xa282ead8U);
}

// The pieces of a protocol buffer: a field's number and its content.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string int_field(int number, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(value);
}
std::string double_field(int number, double value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 1) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string float_field(int number, float value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 5) + little_endian(std::bit_cast<std::uint32_t>(value));
}
std::string bytes_field(int number, const std::string& content) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(content.size()) + content;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string event(std::int64_t step, const std::string& rest) {
  return double_field(1, now()) + int_field(2, static_cast<std::uint64_t>(step)) + rest;
}

}  // namespace

std::uint32_t crc32c(std::string_view data) {
  std::uint32_t crc = ~0U;
  for (const char c : data) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

EventFile::EventFile(const std::string& folder, std::int64_t step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  // Two processes of one run may start within a second; readers sort by name.
  const auto stamp =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  const std::string name =
      "events.out.tfevents." + std::to_string(stamp / 1000) + "." + std::to_string(stamp % 1000) + ".cosformer";
  if (error) throw file_failure("make the folder", folder, error.value());
  file_.emplace((std::filesystem::path(folder) / name).string());
  record(double_field(1, now()) + bytes_field(3, "brain.Event:2"));
  constexpr int kStart = 1;
  if (step > 0) record(event(step + 1, bytes_field(7, int_field(1, kStart))));
  flush();
}

void EventFile::scalar(std::int64_t step, const std::string& name, double value) {
  const std::string entry = bytes_field(1, name) + float_field(2, static_cast<float>(value));
  record(event(step, bytes_field(5, bytes_field(1, entry))));
}

void EventFile::record(const std::string& content) {
  const std::string length = little_endian<std::uint64_t>(content.size());
  pending_ += length + masked_crc(length) + content + masked_crc(content);
}

void EventFile::flush() {
  file_->append(pending_);
  pending_.clear();
}

}  // namespace cosformer::train
