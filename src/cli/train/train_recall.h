// `cosformer train` for the task recall.
#pragma once

#include "train/trainer.h"

namespace cosformer::cli {

void train_recall(const train::TrainRequest& request);

}  // namespace cosformer::cli
