// Data sets as plain values, for comparing them in tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"

namespace cosformer::testing {

struct PlainExample {
  std::vector<std::int32_t> first, second;  // token ids
  std::int32_t label = 0;
  bool operator==(const PlainExample&) const = default;
};

inline std::vector<std::int32_t> token_ids(const data::SequenceView& view) {
  std::vector<std::int32_t> ids(view.size);
  view.copy_token_ids(view.size, ids.data());
  return ids;
}

inline std::vector<float> values(const data::SequenceView& view, float scale) {
  std::vector<float> result(view.size);
  view.copy_values(view.size, scale, result.data());
  return result;
}

inline std::vector<PlainExample> content_of(const data::Dataset& dataset) {
  std::vector<PlainExample> result;
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    const data::Example example = dataset.get(i);
    result.push_back({token_ids(example.first), token_ids(example.second), example.label});
  }
  return result;
}

// The text of a byte sequence.
inline std::string text_of(const data::SequenceView& view) {
  return {static_cast<const char*>(view.data), view.size};
}

}  // namespace cosformer::testing
