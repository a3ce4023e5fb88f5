#include "cli/memory/block_cache.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>

#include <sys/mman.h>

namespace cosformer::cli {
namespace {

constexpr std::size_t kPages = std::size_t{256} << 10, kHugePage = std::size_t{2} << 20;

// What is kept besides is at most this share of the most that was in use; that much larger than asked for a block may
// be.
constexpr std::size_t kShare = 4;

// Lengths that are nearly the same get blocks that are the same.
std::size_t step_of(std::size_t bytes) {
  return bytes < 2 * kHugePage ? kPages : std::max(kHugePage, std::bit_floor(bytes) / 8);
}

std::byte* map(std::size_t size) {
  const std::size_t room = size < 2 * kHugePage ? size : size + kHugePage;
  void* const mapped = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  if (room == size) return begin;
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(begin + before + size, kHugePage - before);
  madvise(begin + before, size, MADV_HUGEPAGE);  // only ever advice
  return begin + before;
}

}  // namespace

BlockCache::Block BlockCache::take(std::size_t bytes) {
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  const std::size_t step = step_of(bytes), size = std::max((bytes + step - 1) / step, std::size_t{1}) * step;
  const std::lock_guard lock(mutex_);
  Block block;
  if (take_kept(size, block)) {
    count_in_use(block.size);
    return block;
  }
  const std::size_t most = std::max(most_, in_use_ + size);
  const std::size_t room = most + std::max(most / kShare, kLeastKept);
  while (!kept_.empty() && in_use_ + size + kept_bytes_ > room) release_oldest();
  kept_.reserve(++blocks_);  // so that giving them all back needs no memory
  block = {map(size), size};
  if (block.data == nullptr) {
    while (!kept_.empty()) release_oldest();
    block.data = map(size);
  }
  if (block.data == nullptr) {
    --blocks_;
    throw std::bad_alloc();
  }
  count_in_use(size);
  return block;
}

void BlockCache::give(Block block) noexcept {
  const std::lock_guard lock(mutex_);
  in_use_ -= block.size;
  kept_.push_back({block, ++clock_});
  kept_bytes_ += block.size;
}

void BlockCache::release() noexcept {
  const std::lock_guard lock(mutex_);
  while (!kept_.empty()) release_oldest();
}

std::size_t BlockCache::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

std::size_t BlockCache::most_in_use() const {
  const std::lock_guard lock(mutex_);
  return most_;
}

std::size_t BlockCache::held() const {
  const std::lock_guard lock(mutex_);
  return in_use_ + kept_bytes_;
}

// The smallest that is large enough.
bool BlockCache::take_kept(std::size_t size, Block& block) {
  auto best = kept_.end();
  for (auto at = kept_.begin(); at != kept_.end(); ++at) {
    const bool fits = at->block.size >= size && at->block.size - size <= size / kShare;
    if (fits && (best == kept_.end() || at->block.size < best->block.size)) best = at;
  }
  if (best == kept_.end()) return false;
  block = best->block;
  kept_bytes_ -= block.size;
  *best = kept_.back();
  kept_.pop_back();
  return true;
}

void BlockCache::release_oldest() noexcept {
  const auto oldest =
      std::min_element(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) { return a.since < b.since; });
  munmap(oldest->block.data, oldest->block.size);
  --blocks_;
  kept_bytes_ -= oldest->block.size;
  *oldest = kept_.back();
  kept_.pop_back();
}

void BlockCache::count_in_use(std::size_t size) {
  in_use_ += size;
  most_ = std::max(most_, in_use_);
}

}  // namespace cosformer::cli
