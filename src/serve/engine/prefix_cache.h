// States behind beginnings of texts, so that a prompt is read on from the longest beginning that was read before.
//
// A state is found by the SHA-256 of the tokens before it. Only such states are kept as a text read from its beginning
// has: behind a generator's cuts, and behind a whole prompt. So a cached beginning changes no bit of what follows.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/formats/sha256.h"
#include "serve/session.h"

namespace cosformer::serve {

// A place in a prompt behind which a state may be kept.
struct PrefixKey {
  Sha256::Digest hash{};   // of the tokens up to there
  std::size_t tokens = 0;  // so many
};

// One for each place where a text that has consumed one token, <eod>, and goes on with `prompt` is cut, and one for its
// end, last.
std::vector<PrefixKey> prefix_keys(std::span<const std::int32_t> prompt, std::int64_t stretch);

class PrefixCache {
 public:
  explicit PrefixCache(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  struct Hit {
    Session session;
    std::size_t tokens;
  };
  // The longest beginning; all of the prompt only where its logits are there.
  std::optional<Hit> find(const std::vector<PrefixKey>& keys);
  // Makes room by forgetting what was not used for longest. What is larger than all room is not kept.
  void put(const PrefixKey& key, const Session& session);
  void set_most_bytes(std::uint64_t bytes);

  std::uint64_t bytes() const { return bytes_; }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Sha256::Digest hash;
    Session session;
    std::uint64_t bytes;
  };
  void shrink_to(std::uint64_t bytes);

  std::uint64_t most_bytes_, bytes_ = 0;
  std::list<Entry> entries_;  // what was used last stands first
  std::map<Sha256::Digest, std::list<Entry>::iterator> by_hash_;
};

// What a session takes in memory.
std::uint64_t bytes_of(const Session& session);

}  // namespace cosformer::serve
