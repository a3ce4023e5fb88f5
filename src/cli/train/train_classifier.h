// `cosformer train` for the tasks that classify.
#pragma once

#include "train/trainer.h"

namespace cosformer::cli {

void train_classifier(const train::TrainRequest& request);

}  // namespace cosformer::cli
