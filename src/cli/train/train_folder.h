// Where `cosformer train` puts a run that nobody has named, and what it changes of one that it goes on with.
#pragma once

#include <string>
#include <vector>

#include "train/trainer.h"

namespace cosformer::cli {

// "runs/reviews-cosformer_plus-0" for reviews.tsv: the data's name, the mechanism, the seed. Tasks whose data are known
// by the task's name have that one.
std::string default_folder(const runs::RunConfig& config);

struct Assignment {
  std::string key, value;  // without a key the value is KEY=VALUE
  std::string where;       // the option, for messages
};

// `cosformer train --continue RUN`. Throws UserError for settings that a run keeps.
train::TrainRequest continuation_of(const std::string& run, const std::vector<Assignment>& changes);

}  // namespace cosformer::cli
