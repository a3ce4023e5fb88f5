// `cosformer train` for the task text_to_text.
#pragma once

#include "train/trainer.h"

namespace cosformer::cli {

void train_text_to_text(const train::TrainRequest& request);

}  // namespace cosformer::cli
