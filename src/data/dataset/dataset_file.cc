#include "data/dataset/dataset_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/files/regular_file.h"
#include "base/formats/json_text.h"

namespace cosformer::data {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are read as they lie in the file");

constexpr std::array<char, 8> kMagic = {'C', 'O', 'S', 'F', 'D', 'A', 'T', 'A'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 64;
constexpr std::int64_t kMostCounted = std::int64_t{1} << 31;
constexpr std::size_t kChecksummedHeaderBytes = 52;

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version, element_type;
  std::uint64_t description_bytes, examples, sequences, elements;
  std::uint32_t body_checksum, header_checksum;
  std::uint64_t zero;
};
static_assert(sizeof(Header) == kHeaderBytes);

std::uint32_t checksum(std::uint32_t start, const void* data, std::size_t size) {
  return static_cast<std::uint32_t>(::crc32_z(start, static_cast<const Bytef*>(data), size));
}

std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw UserError(fmt::format("cannot read '{}' as a data set: {}; generate or copy it again", path, reason));
}

std::string description_of(const DatasetInfo& info) {
  const nlohmann::json json = {{"name", info.name},
                               {"content", static_cast<int>(info.content)},
                               {"vocabulary", info.vocabulary},
                               {"value_scale", info.value_scale},
                               {"pairs", info.pairs},
                               {"width", info.width},
                               {"height", info.height},
                               {"classes", info.classes},
                               {"max_length", info.max_length},
                               {"provenance", info.provenance}};
  // Names may come from files in another encoding; a replaced character is better than no file.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

DatasetInfo parse_description(const std::string& path, std::string_view text) {
  DatasetInfo info;
  nlohmann::json json;
  try {
    json = parse_json(text, path);
  } catch (const UserError&) {
    refuse(path, "its description is not the expected JSON object");
  }
  try {
    info.name = json.at("name").get<std::string>();
    const int content = json.at("content").get<int>();
    if (content != 1 && content != 2) refuse(path, fmt::format("its content is of the unknown kind {}", content));
    info.content = static_cast<Content>(content);
    info.vocabulary = json.at("vocabulary").get<std::int64_t>();
    info.value_scale = json.at("value_scale").get<float>();
    info.pairs = json.at("pairs").get<bool>();
    info.width = json.at("width").get<std::int64_t>();
    info.height = json.at("height").get<std::int64_t>();
    info.classes = json.at("classes").get<std::vector<std::string>>();
    info.max_length = json.at("max_length").get<std::int64_t>();
    info.provenance = json.at("provenance").get<std::string>();
  } catch (const nlohmann::json::exception&) {
    refuse(path, "its description is not the expected JSON object");
  }
  for (const std::int64_t count : {info.vocabulary, info.width, info.height, info.max_length}) {
    if (count < 0 || count > kMostCounted)
      refuse(path, fmt::format("its description has the impossible number {}", count));
  }
  return info;
}

// Where the parts of the file lie.
struct Layout {
  std::uint64_t labels = 0, ends = 0, elements = 0, file_size = 0;

  explicit Layout(const Header& header)
      : labels(kHeaderBytes + padded(header.description_bytes)),
        ends(labels + padded(header.examples * sizeof(std::int32_t))),
        elements(ends + header.sequences * sizeof(std::uint64_t)),
        file_size(elements + header.elements * size_of(static_cast<ElementType>(header.element_type))) {}
};

// All but the body's checksum: what it announces is looked at before there is memory for it.
Header checked_header(const RegularFile& file) {
  const std::string& path = file.path();
  Header header{};
  if (file.size() >= kHeaderBytes) file.read(0, &header, kHeaderBytes);
  if (header.magic != kMagic) refuse(path, "it does not begin with the header of one");
  if (checksum(0, &header, kChecksummedHeaderBytes) != header.header_checksum || header.zero != 0) {
    refuse(path, "its header is damaged");
  }
  if (header.version != kVersion) {
    refuse(path, fmt::format("it has version {} of the format; expected {}", header.version, kVersion));
  }
  // Nothing in a file can be counted higher than its bytes, which also keeps the sums of Layout from overflowing.
  const std::uint64_t most = file.size();
  if (header.element_type < 1 || header.element_type > 4 || header.description_bytes > most || header.examples > most ||
      header.sequences > most || header.elements > most) {
    refuse(path, "its header contradicts the size of the file");
  }
  if (const std::uint64_t expected = Layout(header).file_size; expected != file.size()) {
    refuse(path, fmt::format("it has {} bytes; expected {}", file.size(), expected));
  }
  return header;
}

template <typename Element>
bool all_below(const ArrayDataset::Arrays& arrays, std::uint64_t count, std::int64_t bound) {
  const auto* elements = reinterpret_cast<const Element*>(arrays.elements);
  Element low = 0, high = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    low = std::min(low, elements[i]);
    high = std::max(high, elements[i]);
  }
  return low >= 0 && (count == 0 || static_cast<std::int64_t>(high) < bound);
}

bool tokens_in_vocabulary(const ArrayDataset::Arrays& arrays, std::uint64_t count, std::int64_t vocabulary) {
  const std::int64_t bound = vocabulary - kFirstToken;
  switch (arrays.type) {
    case ElementType::kU8: return all_below<std::uint8_t>(arrays, count, bound);
    case ElementType::kU16: return all_below<std::uint16_t>(arrays, count, bound);
    case ElementType::kI32: return all_below<std::int32_t>(arrays, count, bound);
    case ElementType::kF32: return false;
  }
  return false;
}

void check_content(const std::string& path, const Header& header, const DatasetInfo& info,
                   const ArrayDataset::Arrays& arrays) {
  if (header.sequences != header.examples * (info.pairs ? 2 : 1))
    refuse(path, "its sequences do not match its examples");
  std::uint64_t begin = 0, longest = 0;
  for (const std::uint64_t end : arrays.ends) {
    if (end < begin || end > header.elements) refuse(path, "its sequences overlap");
    longest = std::max(longest, end - begin);
    begin = end;
  }
  if (begin != header.elements) refuse(path, "its sequences do not cover its elements");
  if (info.max_length < 0 || static_cast<std::uint64_t>(info.max_length) < longest) {
    refuse(path, "a sequence is longer than it says");
  }
  const auto classes = static_cast<std::int64_t>(info.classes.size());
  for (const std::int32_t label : arrays.labels) {
    if (label < kNoLabel || label >= classes) refuse(path, "a label is not one of its classes");
  }
  const bool has_tokens = info.content == Content::kTokens || info.vocabulary != 0;
  if (has_tokens && !tokens_in_vocabulary(arrays, header.elements, info.vocabulary)) {
    refuse(path, "a token is not in its vocabulary");
  }
}

}  // namespace

void write_dataset(const std::string& path, const ArrayDataset& dataset) {
  const ArrayDataset::Arrays& arrays = dataset.arrays();
  std::string description = description_of(dataset.info());
  Header header{kMagic,
                kVersion,
                static_cast<std::uint32_t>(arrays.type),
                description.size(),
                arrays.labels.size(),
                arrays.ends.size(),
                dataset.element_count(),
                0,
                0,
                0};
  description.resize(padded(description.size()), '\0');
  const std::array<char, 8> zeros{};
  const std::size_t label_bytes = arrays.labels.size_bytes();

  const std::array<std::pair<const void*, std::size_t>, 5> parts = {{
      {description.data(), description.size()},
      {arrays.labels.data(), label_bytes},
      {zeros.data(), padded(label_bytes) - label_bytes},
      {arrays.ends.data(), arrays.ends.size_bytes()},
      {arrays.elements, static_cast<std::size_t>(dataset.element_count()) * size_of(arrays.type)},
  }};
  for (const auto& [data, size] : parts) {
    if (size > 0) header.body_checksum = checksum(header.body_checksum, data, size);
  }
  header.header_checksum = checksum(0, &header, kChecksummedHeaderBytes);

  AtomicFile file(path);
  file.write(&header, sizeof(header));
  for (const auto& [data, size] : parts) file.write(data, size);
  file.commit();
}

std::shared_ptr<const ArrayDataset> open_dataset(const std::string& path) {
  // Read, not mapped: a mapped file that somebody cuts short would end the process where it is looked at.
  const RegularFile file(path, "a data set");
  const Header header = checked_header(file);
  // Of 8-byte numbers, so that the arrays in it are aligned.
  auto content = std::make_shared<std::vector<std::uint64_t>>(static_cast<std::size_t>((file.size() + 7) / 8));
  file.read(0, content->data(), static_cast<std::size_t>(file.size()));
  const std::span bytes = std::as_bytes(std::span(*content)).first(static_cast<std::size_t>(file.size()));
  if (checksum(0, bytes.data() + kHeaderBytes, bytes.size() - kHeaderBytes) != header.body_checksum) {
    refuse(path, "its content is damaged (the checksum differs)");
  }
  const Layout layout(header);
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + kHeaderBytes;
  DatasetInfo info = parse_description(path, {text, static_cast<std::size_t>(header.description_bytes)});

  ArrayDataset::Arrays arrays;
  arrays.type = static_cast<ElementType>(header.element_type);
  arrays.labels = {reinterpret_cast<const std::int32_t*>(bytes.data() + layout.labels),
                   static_cast<std::size_t>(header.examples)};
  arrays.ends = {reinterpret_cast<const std::uint64_t*>(bytes.data() + layout.ends),
                 static_cast<std::size_t>(header.sequences)};
  arrays.elements = bytes.data() + layout.elements;
  check_content(path, header, info, arrays);
  return std::make_shared<ArrayDataset>(std::move(info), arrays, std::move(content));
}

}  // namespace cosformer::data
