#include "serve/engine/prefix_cache.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace cosformer::serve {

std::vector<PrefixKey> prefix_keys(std::span<const std::int32_t> prompt, std::int64_t stretch) {
  std::vector<PrefixKey> keys;
  Sha256::Digest before{};
  std::size_t begin = 0;
  while (begin < prompt.size()) {
    // The <eod> before the prompt counts.
    const auto room = static_cast<std::size_t>(stretch) - (begin + 1) % static_cast<std::size_t>(stretch);
    const std::size_t count = std::min(room, prompt.size() - begin);
    Sha256 hash;
    hash.add(before.data(), before.size());
    hash.add(prompt.data() + begin, count * sizeof(std::int32_t));
    before = hash.finish();
    begin += count;
    keys.push_back({before, begin});
  }
  return keys;
}

std::uint64_t bytes_of(const Session& session) {
  const auto numbers = session.logits.defined() ? static_cast<std::uint64_t>(session.logits.nbytes()) : 0;
  return session.state.bytes() + numbers + session.recent.size() * sizeof(std::int32_t) + sizeof(Session);
}

std::optional<PrefixCache::Hit> PrefixCache::find(const std::vector<PrefixKey>& keys) {
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    const auto found = by_hash_.find(key->hash);
    if (found == by_hash_.end()) continue;
    if (key == keys.rbegin() && !found->second->session.logits.defined()) continue;
    entries_.splice(entries_.begin(), entries_, found->second);
    return Hit{found->second->session, key->tokens};
  }
  return std::nullopt;
}

void PrefixCache::put(const PrefixKey& key, const Session& session) {
  const std::uint64_t bytes = bytes_of(session);
  const auto found = by_hash_.find(key.hash);
  if (found != by_hash_.end()) {
    if (found->second->session.logits.defined() || !session.logits.defined()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return;
    }
    bytes_ -= found->second->bytes;
    entries_.erase(found->second);
    by_hash_.erase(found);
  }
  if (bytes > most_bytes_) return;
  shrink_to(most_bytes_ - bytes);
  entries_.push_front({key.hash, session, bytes});
  by_hash_[key.hash] = entries_.begin();
  bytes_ += bytes;
}

void PrefixCache::set_most_bytes(std::uint64_t bytes) {
  most_bytes_ = bytes;
  shrink_to(bytes);
}

void PrefixCache::shrink_to(std::uint64_t bytes) {
  while (bytes_ > bytes && !entries_.empty()) {
    bytes_ -= entries_.back().bytes;
    by_hash_.erase(entries_.back().hash);
    entries_.pop_back();
  }
}

}  // namespace cosformer::serve
