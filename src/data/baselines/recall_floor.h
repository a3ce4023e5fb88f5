// What rules that bind no value to its key reach on the task recall.
#pragma once

#include "data/baselines/floor.h"
#include "data/tasks/recall/recall_text.h"

namespace cosformer::data {

// Shares of the queries of the first `count` texts of a part that are met by any value, drawn; by the value that was
// read last; by a value of the text's pairs, drawn.
std::vector<Floor> recall_floors(const RecallConfig& config, const RecallSeeds& seeds, RecallPart part,
                                 std::uint64_t count);

}  // namespace cosformer::data
