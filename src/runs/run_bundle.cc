#include "runs/run_bundle.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "base/formats/base64.h"
#include "base/formats/safetensors.h"
#include "base/formats/sha256.h"

namespace cosformer::runs {
namespace {

using safetensors::Entry;
using safetensors::Metadata;
using safetensors::Reader;

constexpr const char* kVersion = "1";
const std::string kVersionKey = "cosformer.bundle", kSettingsKey = "cosformer.settings",
                  kTokenizerKey = "cosformer.tokenizer_file", kResultKey = "cosformer.result",
                  kSumKey = "cosformer.bundle_sha256";

std::string sum_of(const Metadata& metadata, const Reader& tensors) {
  Sha256 hash;
  const auto add = [&](const std::string& text) { hash.add(std::to_string(text.size()) + ':' + text); };
  for (const auto& [key, value] : metadata) {
    if (key == kSumKey) continue;
    add(key);
    add(value);
  }
  std::vector<const Entry*> entries;
  for (const Entry& entry : tensors.entries()) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) { return a->name < b->name; });
  std::vector<char> block(std::size_t{1} << 20);
  for (const Entry* entry : entries) {
    add(entry->name);
    add(std::string(safetensors::name_of(entry->dtype)));
    for (const std::int64_t size : entry->shape) add(std::to_string(size));
    for (std::uint64_t at = 0; at < entry->size();) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), entry->size() - at));
      tensors.read_part(*entry, at, block.data(), count);
      hash.add(block.data(), count);
      at += count;
    }
  }
  return hexadecimal(hash.finish());
}

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw UserError(fmt::format("'{}' {}", path, reason));
}

}  // namespace

void write_bundle(const std::string& path, const std::string& weights, const BundleContent& content) {
  if (std::filesystem::exists(path)) {
    bool is_bundle = false;
    try {
      is_bundle = Reader(path).metadata().contains(kVersionKey);
    } catch (const UserError&) {
    }
    if (!is_bundle) refuse(path, "exists and is not a bundle; choose another name with --out");
  }
  const Reader reader(weights);
  Metadata metadata = reader.metadata();
  metadata[kVersionKey] = kVersion;
  metadata[kSettingsKey] = content.settings;
  if (content.tokenizer) metadata[kTokenizerKey] = to_base64(*content.tokenizer);
  if (content.result) metadata[kResultKey] = *content.result;
  metadata[kSumKey] = sum_of(metadata, reader);
  std::vector<safetensors::TensorToWrite> tensors;
  for (const Entry& entry : reader.entries()) {
    safetensors::TensorToWrite tensor;
    tensor.name = entry.name;
    tensor.dtype = entry.dtype;
    tensor.shape = entry.shape;
    if (entry.size() > 0) {
      tensor.source = [&reader, &entry](std::uint64_t offset, void* destination, std::size_t size) {
        reader.read_part(entry, offset, destination, size);
      };
    }
    tensors.push_back(std::move(tensor));
  }
  safetensors::write(path, tensors, metadata);
}

bool is_file(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::exists(path, unknown) && !std::filesystem::is_directory(path, unknown);
}

BundleContent read_bundle(const std::string& path, bool check_all) {
  const Reader reader(path);
  const Metadata& metadata = reader.metadata();
  const auto text = [&](const std::string& key) -> std::optional<std::string> {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::nullopt : std::optional(found->second);
  };
  const std::optional<std::string> version = text(kVersionKey);
  if (!version) refuse(path, "is neither a run's folder nor a bundle; cosformer bundle RUN makes one");
  if (*version != kVersion) {
    refuse(path,
           fmt::format(
               "is a bundle of version '{}', and this program reads version {}; read it with the program that wrote it",
               *version, kVersion));
  }
  const std::optional<std::string> settings = text(kSettingsKey), sum = text(kSumKey);
  if (!settings || !sum || (check_all && *sum != sum_of(metadata, reader))) {
    refuse(path, "is not as it was written (its checksum differs); copy it again, or make it again: cosformer bundle");
  }
  BundleContent content{*settings, std::nullopt, text(kResultKey)};
  if (const std::optional<std::string> letters = text(kTokenizerKey)) {
    content.tokenizer = from_base64(*letters);
    if (!content.tokenizer) refuse(path, "is not as it was written: its tokenizer cannot be read");
  }
  return content;
}

}  // namespace cosformer::runs
