// How many steps a run takes and how its learning rate goes; and going on with one that has ended: more steps, other
// settings of the training, other data.
//
// RUN/config.toml counts in train.continued how often that was asked for; a checkpoint knows how often it had been done
// when it was written. A checkpoint of before is brought up to date when it is loaded, so a process that is killed
// anywhere in between leaves a run that goes on.
#pragma once

#include "runs/checkpoint.h"
#include "runs/run_folder.h"
#include "train/optimiser/schedule.h"

namespace cosformer::train {

// As the settings have it: from the run's beginning on, or from where it was last continued.
Schedule schedule_of(const runs::TrainConfig& config, const runs::TrainState& state);

// Epochs count from `behind` steps on.
std::int64_t steps_in_all(const runs::TrainConfig& config, double steps_per_epoch, std::int64_t behind);

// Throws UserError where a run that is to be continued has no step left.
void require_steps_left(const std::string& run, const runs::TrainState& state);

// Whether the state is of before the last --continue.
bool continuation_is_due(const runs::RunConfig& config, const runs::TrainState& state);

// Asked to go on beyond the end: counts that in the settings, unless the same was asked for before and has not come to
// its end. Throws UserError where the data are others and were not named.
void count_continuation(const std::string& run, runs::RunConfig& config, const runs::TrainState& state,
                        const std::string& data_name, bool names_data);

// Makes it the beginning of the new stretch: the learning rate begins a new schedule, from that of the last step;
// patience begins anew; the number of steps is to be found (0). With other data the next epoch begins, and what
// was best on the former validation part is no longer.
void begin_continuation(const runs::RunConfig& config, const std::string& data_name, runs::TrainState& state);

// The data of a continued run, fitted to the model as it was made: longer sequences are cut, which a note says. Throws
// UserError for other classes, more tokens, another number of texts or another size of images.
data::TaskData fitted_task(const data::TaskData& task, const models::InputConfig& made);

// For the log: "continued at step 60".
std::string describe_continuation(const runs::TrainState& state, bool other_data);

}  // namespace cosformer::train
