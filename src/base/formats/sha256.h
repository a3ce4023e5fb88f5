// SHA-256 (FIPS 180-4): names for content that can be compared. For files of gigabytes see data/file_hash.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cosformer {

class Sha256 {
 public:
  using Digest = std::array<std::uint8_t, 32>;

  void add(const void* data, std::size_t size);
  void add(std::string_view text) { add(text.data(), text.size()); }
  // To be called once, last.
  Digest finish();

 private:
  void compress(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> pending_{};
  std::uint64_t bytes_ = 0;
};

Sha256::Digest sha256(std::string_view text);

// Lower-case hexadecimal digits.
std::string hexadecimal(const Sha256::Digest& digest);

}  // namespace cosformer
