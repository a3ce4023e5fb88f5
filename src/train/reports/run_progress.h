// How far a run has come, as its folder says, without its data or its model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cosformer::train {

struct RunProgress {
  std::int64_t step = 0;         // steps taken, as of the newest checkpoint
  std::int64_t total_steps = 0;  // steps to take
  std::int64_t epoch = 0;        // how often all training data have been read
  std::int64_t best_step = 0;    // of the best weights; 0: nothing was evaluated yet
  bool ended = false;            // after all steps, or early because nothing got better
};

// Nothing where there is neither a checkpoint that can be read nor a result. Throws UserError for a damaged result.
std::optional<RunProgress> progress_of(const std::string& run);

// "40 of 704 (2 epochs), not ended; go on with: cosformer train --resume RUN"
std::string in_words(const RunProgress& progress, const std::string& run);

}  // namespace cosformer::train
