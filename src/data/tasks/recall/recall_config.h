// The task recall as settings: what texts of pairs and queries are like, [recall] in a settings file.
//
// A text has tokens of three kinds that no two kinds share: fillers, keys, values. A pair is a key and its value; a
// query is a key of one of the pairs again, whose value, which comes next, is to be predicted. recall_text.h makes
// them.
#pragma once

#include <cstdint>
#include <string>

#include "base/settings.h"

namespace cosformer::data {

inline constexpr const char* kRecallTask = "recall";

struct RecallConfig {
  std::int64_t pairs = 16;                            // of a text at most
  std::int64_t least_pairs = 1;                       // and at least; 0: as many as at most
  std::int64_t queries = 0;                           // of a text; 0: each pair once
  std::int64_t length = 128;                          // tokens of a text
  std::int64_t keys = 64, values = 64, fillers = 16;  // different tokens of each kind
  std::string gaps = "power";                         // how queries lie behind the pairs: power, uniform
  bool needle = false;                                // pairs lie anywhere among fillers, queries at the end

  std::int64_t vocabulary() const { return fillers + keys + values; }
  std::int64_t fewest_pairs() const { return least_pairs == 0 ? pairs : least_pairs; }
  // Tokens are numbered by kind: fillers, then keys, then values.
  std::int64_t first_key() const { return fillers; }
  std::int64_t first_value() const { return fillers + keys; }
};

void add_settings(Settings& settings, RecallConfig& config);  // keys "recall.*"

// Throws UserError for texts that cannot be, naming the settings.
void require_possible(const RecallConfig& config);

// In a line, without the names of settings: "1 to 16 pairs of 64 keys and 64 values, then queries, in 128 tokens".
std::string describe(const RecallConfig& config);

}  // namespace cosformer::data
