// Large blocks of memory that stay when they are freed, so that the next ones cost no page faults, and that together
// are never much more than were in use at once.
//
// A block's pages are its own: blocks of many different sizes, as batches of mixed lengths make them, leave no gaps
// between them that are too small for the next one. One heap for all of them grew to seven times what was in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace cosformer::cli {

class BlockCache {
 public:
  struct Block {
    std::byte* data = nullptr;  // on a page, or on a huge one where it has several
    std::size_t size = 0;
  };

  // So much is always kept: page faults of a small model's tensors would cost more than their memory is worth.
  static constexpr std::size_t kLeastKept = std::size_t{128} << 20;

  BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;
  ~BlockCache() { release(); }

  // Of at least so many bytes, with whatever is in them. Throws std::bad_alloc.
  Block take(std::size_t bytes);
  void give(Block block) noexcept;
  // Gives the system back what is not in use.
  void release() noexcept;

  std::size_t in_use() const;
  std::size_t most_in_use() const;
  std::size_t held() const;  // in use or kept

 private:
  struct Kept {
    Block block;
    std::uint64_t since = 0;
  };
  bool take_kept(std::size_t size, Block& block);
  void release_oldest() noexcept;
  void count_in_use(std::size_t size);

  mutable std::mutex mutex_;
  std::vector<Kept> kept_;
  std::size_t blocks_ = 0;  // how many there are, in use or kept
  std::size_t kept_bytes_ = 0, in_use_ = 0, most_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace cosformer::cli
