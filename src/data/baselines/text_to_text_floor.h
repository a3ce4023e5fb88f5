// What rules that understand nothing reach on text to text.
#pragma once

#include <vector>

#include "data/baselines/floor.h"

namespace cosformer::data {

// Shares of `test`'s targets that are met exactly by the most frequent target of `train`, and by the source itself.
// Both are of pairs, in the same tokens.
std::vector<Floor> text_to_text_floors(const Dataset& train, const Dataset& test);

}  // namespace cosformer::data
