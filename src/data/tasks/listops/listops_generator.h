// Makes the ListOps task of the Long Range Arena: random trees, those with a length in a window kept, no two alike.
//
// A node is, with probability 1/4 and above the greatest depth, an operator (one of four) over 2 to 10 nodes, else a
// digit. Tree number i of a seed depends on the seed and i alone, and trees are accepted in the order of their numbers:
// the same seed gives the same bytes whatever the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "data/tasks/generated_splits.h"

namespace cosformer::data {

struct ListOpsOptions {
  std::uint64_t seed = 0;
  std::size_t train = 96000, valid = 2000, test = 2000;
  int max_depth = 10;
  int max_arguments = 10;
  std::int64_t longer_than = 500, shorter_than = 2000;  // symbols, parentheses not counted
  unsigned threads = 0;                                 // 0: as many as processors
};

// The options that decide the content, as JSON.
std::string provenance_of(const ListOpsOptions& options);

// Throws UserError for impossible options, also when the window holds too few different expressions.
Splits generate_listops(const ListOpsOptions& options, const Progress& progress = {});

Splits open_or_generate_listops(const std::string& folder, const ListOpsOptions& options,
                                const Progress& progress = {});

}  // namespace cosformer::data
