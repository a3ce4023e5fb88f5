// `cosformer train` for the tasks lm and mlm.
#pragma once

#include "train/trainer.h"

namespace cosformer::cli {

void train_language(const train::TrainRequest& request);

}  // namespace cosformer::cli
