// Texts that are written at the same time: one step reads one token of each. Texts join and leave between two steps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "serve/generator.h"

namespace cosformer::serve {

class DecodeBatch {
 public:
  // Finds out whether this model gives a text the same bits alone and beside others, up to `most_rows` of them; where
  // it does not, or has a cache that grows, texts are read one after the other.
  DecodeBatch(const Generator& generator, std::int64_t most_rows);

  bool together() const { return together_; }
  std::size_t size() const { return sessions_.size(); }

  // Rows are numbered in the order in which they joined. A session's state is the batch's while it is in it.
  void join(std::vector<std::shared_ptr<Session>> sessions);
  // `rows` in rising order; their sessions are whole again.
  void leave(const std::vector<std::int64_t>& rows);
  // Reads one token of each row; their logits and recent tokens are those behind it.
  void read(const std::vector<std::int32_t>& tokens);

  Session& session(std::size_t row) { return *sessions_.at(row); }
  std::int64_t consumed(std::size_t row) const;

 private:
  bool rows_are_independent(std::int64_t most_rows) const;

  const Generator& generator_;
  std::vector<std::shared_ptr<Session>> sessions_;
  models::LmState state_;  // of all, where they are read together
  bool together_;
};

}  // namespace cosformer::serve
