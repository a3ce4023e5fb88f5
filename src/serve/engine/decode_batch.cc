#include "serve/engine/decode_batch.h"

#include <algorithm>
#include <set>

#include <ATen/ATen.h>

namespace cosformer::serve {
DecodeBatch::DecodeBatch(const Generator& generator, std::int64_t most_rows)
    : generator_(generator), together_(most_rows > 1 && rows_are_independent(most_rows)) {}

bool DecodeBatch::rows_are_independent(std::int64_t most_rows) const {
  const models::LanguageModel& model = generator_.model();
  const models::LmState alone = model.empty_state(1);
  if (alone.has_cache()) return false;
  if (!model.device().is_cpu()) return true;  // a GPU's products are the same to rounding only, whatever is done here
  const std::int32_t vocabulary = generator_.tokenizer()->vocabulary();
  const auto token = [&](std::int64_t row, std::int64_t step) {
    return static_cast<std::int32_t>((7919 * row + 104729 * step + 11) % vocabulary);
  };
  constexpr std::int64_t kSteps = 3;
  std::set<std::int64_t> sizes{2, 3, std::min<std::int64_t>(most_rows, 7), most_rows};
  for (const std::int64_t size : sizes) {
    models::LmState all = alone.repeated(size);
    std::vector<models::LmState> each(static_cast<std::size_t>(size), alone);
    for (std::int64_t step = 0; step < kSteps; ++step) {
      std::vector<std::int32_t> tokens;
      for (std::int64_t row = 0; row < size; ++row) tokens.push_back(token(row, step));
      const at::Tensor together = generator_.read_together(tokens, all);
      for (std::int64_t row = 0; row<size; row += size> 8 ? 5 : 1) {
        const auto at = static_cast<std::size_t>(row);
        if (!at::equal(generator_.read_together({tokens[at]}, each[at])[0], together[row])) return false;
      }
    }
  }
  return true;
}

std::int64_t DecodeBatch::consumed(std::size_t row) const {
  return together_ ? state_.clock.consumed().at(row) : sessions_.at(row)->consumed();
}

void DecodeBatch::join(std::vector<std::shared_ptr<Session>> sessions) {
  if (sessions.empty()) return;
  if (together_) {
    std::vector<const models::LmState*> states;
    if (!sessions_.empty()) states.push_back(&state_);
    for (const auto& session : sessions) states.push_back(&session->state);
    state_ = states.size() == 1 ? *states.front() : models::LmState::joined(states);
    for (const auto& session : sessions) session->state.layers.clear();
  }
  sessions_.insert(sessions_.end(), sessions.begin(), sessions.end());
}

void DecodeBatch::leave(const std::vector<std::int64_t>& rows) {
  if (rows.empty()) return;
  std::vector<std::int64_t> left;
  std::vector<std::shared_ptr<Session>> staying;
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(sessions_.size()); ++row) {
    const auto& session = sessions_[static_cast<std::size_t>(row)];
    if (!std::binary_search(rows.begin(), rows.end(), row)) {
      left.push_back(row);
      staying.push_back(session);
    } else if (together_ && session.use_count() > 1) {  // by now somebody else's too, who goes on with it
      session->state = state_.rows({row});
    }
  }
  sessions_ = std::move(staying);
  if (together_) state_ = left.empty() ? models::LmState() : state_.rows(left);
}

void DecodeBatch::read(const std::vector<std::int32_t>& tokens) {
  if (!together_) {
    for (std::size_t row = 0; row < tokens.size(); ++row) generator_.read(*sessions_[row], {&tokens[row], 1});
    return;
  }
  const at::Tensor logits = generator_.read_together(tokens, state_);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    // Not a view, which would keep everybody's.
    sessions_[row]->logits = logits[static_cast<std::int64_t>(row)].clone();
    sessions_[row]->remember({&tokens[row], 1});
  }
}

}  // namespace cosformer::serve
