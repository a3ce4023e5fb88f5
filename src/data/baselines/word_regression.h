// Logistic regression on the words and pairs of neighbouring words of texts: what a text classifier has to beat, since
// it knows which words occur and next to nothing of their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset/dataset.h"

namespace cosformer::data {

// Learns on these examples of `train` and gives the likeliest class of these of `test`; labels are below `classes`. The
// sequences are texts (is_text in tokenized_text.h), of pairs both count. Words and pairs of words are hashed, each
// counts once in a text and by how rare it is. Deterministic; no features are kept in memory.
std::vector<std::int32_t> predict_by_words(const Dataset& train, std::span<const std::size_t> train_examples,
                                           const Dataset& test, std::span<const std::size_t> test_examples,
                                           std::size_t classes);

}  // namespace cosformer::data
