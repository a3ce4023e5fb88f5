// safetensors::write: checks, order, header text, streaming. The format is described in base/formats/safetensors.h.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/formats/safetensors.h"
#include "base/formats/safetensors_header.h"

namespace cosformer::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie in memory");

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kHeaderAlignment = 8;

[[noreturn]] void refuse_to_write(const std::string& path, const std::string& fault) {
  throw UserError(fmt::format("cannot write '{}' as safetensors: {}", path, fault));
}

struct Planned {
  const TensorToWrite* tensor;
  std::uint64_t bytes;
};

// Checked, and in the order of the file.
std::vector<Planned> plan(const std::string& path, const std::vector<TensorToWrite>& tensors) {
  std::vector<Planned> planned;
  std::set<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) {
    if (tensor.name.empty()) refuse_to_write(path, "a tensor has an empty name; give each one a name");
    if (tensor.name == kMetadataName) {
      refuse_to_write(path, fmt::format("the name {} is kept for metadata; rename the tensor", in_quotes(tensor.name)));
    }
    if (!names.insert(tensor.name).second) {
      refuse_to_write(path,
                      fmt::format("two tensors are named {}; give each one its own name", in_quotes(tensor.name)));
    }
    const auto bytes = byte_count(tensor.dtype, tensor.shape);
    if (!bytes || tensor.shape.size() > kMaxRank) {
      refuse_to_write(
          path,
          fmt::format(
              "tensor {} has the impossible shape {}; expected at most {} non-negative dimensions that fit in memory",
              in_quotes(tensor.name), text_of(tensor.shape), kMaxRank));
    }
    const bool has_source = static_cast<bool>(tensor.source);
    if ((tensor.data != nullptr && has_source) || (*bytes > 0 && tensor.data == nullptr && !has_source)) {
      refuse_to_write(path, fmt::format("tensor {} has {}; give one of the two", in_quotes(tensor.name),
                                        has_source ? "both data and a source" : "neither data nor a source"));
    }
    planned.push_back({&tensor, *bytes});
  }
  std::sort(planned.begin(), planned.end(), [](const Planned& a, const Planned& b) {
    const std::size_t a_size = size_of(a.tensor->dtype), b_size = size_of(b.tensor->dtype);
    return a_size != b_size ? a_size > b_size : a.tensor->name < b.tensor->name;
  });
  return planned;
}

std::string json_text(const std::string& path, const std::string& text, const char* role) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {  // its only fault for text: not UTF-8, so it is not shown
    refuse_to_write(path, std::string(role) + " is not valid UTF-8; spell it in UTF-8");
  }
}

std::string header_text(const std::string& path, const std::vector<Planned>& planned, const Metadata& metadata) {
  std::string text = "{";
  const auto separate = [&text] {
    if (text.back() != '{') text += ',';
  };
  if (!metadata.empty()) {
    text += '"' + std::string(kMetadataName) + "\":{";
    for (const auto& [key, value] : metadata) {
      separate();
      text += json_text(path, key, "a metadata key") + ":" + json_text(path, value, "a metadata value");
    }
    text += '}';
  }
  std::uint64_t begin = 0;
  for (const auto& [tensor, bytes] : planned) {
    std::uint64_t end = 0;
    if (__builtin_add_overflow(begin, bytes, &end)) refuse_to_write(path, "the tensors have more than 2^64 bytes");
    separate();
    text += json_text(path, tensor->name, "a tensor's name") + ":{\"dtype\":\"" + std::string(name_of(tensor->dtype)) +
            "\",\"shape\":[";
    for (std::size_t i = 0; i < tensor->shape.size(); ++i)
      text += (i > 0 ? "," : "") + std::to_string(tensor->shape[i]);
    text += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
    begin = end;
  }
  text += '}';
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  if (text.size() > kMaxHeaderBytes) {
    refuse_to_write(
        path,
        fmt::format("the header would take {} bytes, above the format's limit {}; write fewer tensors or less metadata",
                    text.size(), kMaxHeaderBytes));
  }
  return text;
}

}  // namespace

void write(const std::string& path, const std::vector<TensorToWrite>& tensors, const Metadata& metadata) {
  const std::vector<Planned> planned = plan(path, tensors);
  const std::string header = header_text(path, planned, metadata);
  std::array<unsigned char, kLengthBytes> length{};
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(header.size()) >> (8 * i));
  }

  AtomicFile file(path);
  file.write(length.data(), length.size());
  file.write(header.data(), header.size());
  std::vector<std::byte> block;
  for (const auto& [tensor, bytes] : planned) {
    if (tensor->data != nullptr) {
      file.write(tensor->data, bytes);
      continue;
    }
    for (std::uint64_t offset = 0; offset < bytes;) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, bytes - offset));
      if (block.size() < count) block.resize(count);
      tensor->source(offset, block.data(), count);
      file.write(block.data(), count);
      offset += count;
    }
  }
  file.commit();
}

}  // namespace cosformer::safetensors
