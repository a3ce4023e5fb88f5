#include "nn/tensor_file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include <ATen/ATen.h>
#include <fmt/core.h>
#include <zlib.h>

#include "base/error.h"
#include "base/formats/safetensors.h"

namespace cosformer::nn {
namespace {

using safetensors::DType;

DType dtype_of(at::ScalarType type, const std::string& name) {
  switch (type) {
    case at::kDouble: return DType::kF64;
    case at::kFloat: return DType::kF32;
    case at::kHalf: return DType::kF16;
    case at::kBFloat16: return DType::kBF16;
    case at::kLong: return DType::kI64;
    case at::kInt: return DType::kI32;
    case at::kShort: return DType::kI16;
    case at::kChar: return DType::kI8;
    case at::kByte: return DType::kU8;
    case at::kBool: return DType::kBool;
    default:
      throw UserError(
          fmt::format("cannot write tensor '{}': safetensors has no dtype for {}", name, c10::toString(type)));
  }
}

// What torch calls a dtype of the file; nothing for those that torch lacks.
std::optional<at::ScalarType> scalar_type_of(DType dtype) {
  switch (dtype) {
    case DType::kF64: return at::kDouble;
    case DType::kF32: return at::kFloat;
    case DType::kF16: return at::kHalf;
    case DType::kBF16: return at::kBFloat16;
    case DType::kI64: return at::kLong;
    case DType::kI32: return at::kInt;
    case DType::kI16: return at::kShort;
    case DType::kI8: return at::kChar;
    case DType::kU8: return at::kByte;
    case DType::kBool: return at::kBool;
    default: return std::nullopt;
  }
}

std::string text_of(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

// All that keeps the file from fitting the module, a line each; empty when it fits.
std::string misfits(const safetensors::Reader& file, const NamedTensors& tensors) {
  std::string text;
  std::vector<std::string> wanted;
  for (const auto& [name, tensor] : tensors) {
    wanted.push_back(name);
    const safetensors::Entry* entry = file.find(name);
    if (entry == nullptr) {
      text += fmt::format("\n  missing: {} {}", name, text_of(tensor.sizes()));
    } else if (at::IntArrayRef(entry->shape) != tensor.sizes()) {
      text += fmt::format("\n  shape of {}: expected {}, the file has {}", name, text_of(tensor.sizes()),
                          text_of(entry->shape));
    } else if (!scalar_type_of(entry->dtype).has_value()) {
      text +=
          fmt::format("\n  dtype of {}: {} cannot be loaded", name, std::string(safetensors::name_of(entry->dtype)));
    }
  }
  for (const safetensors::Entry& entry : file.entries()) {
    if (std::find(wanted.begin(), wanted.end(), entry.name) == wanted.end()) {
      text += fmt::format("\n  not expected: {} {}", entry.name, text_of(entry.shape));
    }
  }
  return text;
}

class Checksum {
 public:
  void add(const void* data, std::size_t size) {
    if (size > 0) value_ = ::crc32_z(value_, static_cast<const Bytef*>(data), size);
  }
  std::string text() const {
    std::array<char, 16> digits{};
    std::snprintf(digits.data(), digits.size(), "%08lx", static_cast<unsigned long>(value_));
    return digits.data();
  }

 private:
  uLong value_ = ::crc32_z(0, nullptr, 0);
};

void require_checksum(const safetensors::Reader& file) {
  const auto expected = file.metadata().find(kChecksumKey);
  if (expected == file.metadata().end()) return;
  std::map<std::string, const safetensors::Entry*> sorted;
  for (const safetensors::Entry& entry : file.entries()) sorted[entry.name] = &entry;
  Checksum checksum;
  std::vector<char> block(std::size_t{1} << 20);
  for (const auto& [name, entry] : sorted) {
    checksum.add(name.data(), name.size());
    for (std::uint64_t at = 0; at < entry->size(); at += block.size()) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), entry->size() - at));
      file.read_part(*entry, at, block.data(), size);
      checksum.add(block.data(), size);
    }
  }
  if (checksum.text() == expected->second) return;
  throw UserError(
      fmt::format("'{}' is damaged: its numbers are not as they were written (the checksum differs); copy it again. If "
                  "they were changed on purpose, leave {} out of its metadata",
                  file.path(), kChecksumKey));
}

}  // namespace

std::string checksum_of(const NamedTensors& tensors) {
  const std::map<std::string, at::Tensor> sorted(tensors.begin(), tensors.end());
  Checksum checksum;
  for (const auto& [name, tensor] : sorted) {
    const at::Tensor bytes = tensor.detach().to(at::kCPU).contiguous();
    checksum.add(name.data(), name.size());
    checksum.add(bytes.data_ptr(), static_cast<std::size_t>(bytes.nbytes()));
  }
  return checksum.text();
}

void write_tensors(const std::string& path, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> kept;  // contiguous copies on the CPU live until the file is written
  std::vector<safetensors::TensorToWrite> entries;
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.detach().to(at::kCPU).contiguous());
    safetensors::TensorToWrite entry;
    entry.name = name;
    entry.dtype = dtype_of(tensor.scalar_type(), name);
    entry.shape = tensor.sizes().vec();
    entry.data = kept.back().data_ptr();
    entries.push_back(std::move(entry));
  }
  safetensors::write(path, entries, metadata);
}

NamedTensors read_all_tensors(const std::string& path) {
  const safetensors::Reader file(path);
  NamedTensors all;
  for (const safetensors::Entry& entry : file.entries()) {
    const std::optional<at::ScalarType> type = scalar_type_of(entry.dtype);
    if (!type) {
      throw UserError(fmt::format("cannot load '{}' of '{}': its dtype is {}", entry.name, path,
                                  std::string(safetensors::name_of(entry.dtype))));
    }
    all.emplace_back(entry.name, at::empty(entry.shape, at::TensorOptions().dtype(*type)));
    file.read(entry, all.back().second.data_ptr(), entry.size());
  }
  return all;
}

void read_tensors(const std::string& path, const NamedTensors& tensors) {
  const safetensors::Reader file(path);
  const std::string complaint = misfits(file, tensors);
  if (!complaint.empty()) throw UserError(fmt::format("'{}' does not fit what is to be loaded:{}", path, complaint));
  require_checksum(file);
  at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    const safetensors::Entry& entry = *file.find(name);
    const at::Tensor read = at::empty(entry.shape, at::TensorOptions().dtype(*scalar_type_of(entry.dtype)));
    file.read(entry, read.data_ptr(), entry.size());
    tensor.copy_(read);
  }
}

}  // namespace cosformer::nn
