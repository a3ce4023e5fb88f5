// One measurement of `cosformer bench decode`: a language model of random weights, a state of some context, new tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench/timing.h"

namespace cosformer::cli {

struct LmDecodeCase {
  std::string attention = "cosformer", device = "cpu";
  std::string pattern;            // in place of `attention`: mechanisms of the layers, separated by commas
  std::string dtype = "float32";  // or bfloat16: of weights, and of the cache of keys and values
  long long context = 1024, batch = 1;
  long long layers = 4, width = 256, heads = 4, vocabulary = 258;
  bool consume = false;  // the context is read as a random text; otherwise the state is filled with random numbers
  double seconds = 1;
  double most_gigabytes = 4;  // of state
};

struct LmDecodeResult {
  Timing token;         // of one new token in each row
  double limit_ms = 0;  // what its weights and state take to be read, and what is written, at the speed of a copy
  std::uint64_t state_bytes = 0;
  long long parameters = 0, tokens = 0;
  double prompt_seconds = 0;  // with `consume`
  std::string skipped;        // why there is no measurement
};

// What the case is called in tables: its mechanism, or the hybrid. Throws UserError for a pattern that cannot be.
std::string name_of(const LmDecodeCase& c);

// Cases that differ in their contexts alone. They take turns of a few tokens on one model, so that a machine whose
// speed drifts is equally fast for all.
std::vector<LmDecodeResult> measure_lm_decode(const std::vector<LmDecodeCase>& cases);

}  // namespace cosformer::cli
