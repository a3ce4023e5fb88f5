// Training a run from its beginning, or from its last checkpoint, to its end.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runs/checkpoint.h"
#include "runs/run_folder.h"
#include "train/jobs/job.h"

namespace cosformer::train {

// What somebody watching wants to know.
struct Observer {
  std::function<void(const std::string& line)> say;  // a line worth keeping
  // After each step; `loss` is the latest that is known (it may be some steps old), NaN before the first.
  std::function<void(const runs::TrainState& state, double loss, double tokens_per_second)> step;
  // Before `step`: seconds that the training will still take, evaluations and checkpoints included, once that can be
  // told; may be empty.
  std::function<void(double seconds)> time_left;
  std::function<double()> peak_memory;    // bytes of tensors held at most since the training began; may be empty
  std::function<double()> peak_resident;  // bytes that the process had in the machine's memory at most; may be empty
};

enum class Ending { kFinished, kStoppedEarly, kInterrupted };

struct TrainResult {
  Ending ending = Ending::kFinished;
  runs::TrainState state;
  PartResult valid, test;        // of the best weights, not when interrupted; empty for a part that is not there
  double tokens_per_second = 0;  // while training, evaluations and checkpoints not counted
  double peak_memory = 0;        // bytes of tensors; 0: nobody watched
  double peak_resident = 0;      // bytes of the whole process in the machine's memory; 0: nobody watched
  std::int64_t parameters = 0;
};

struct TrainRequest {
  std::string run;                   // a folder made by create_run
  runs::RunConfig config;            // as in that folder
  std::optional<std::int64_t> from;  // go on from the checkpoint of this step; none: from the newest, if there is one
  bool data_moved = false;           // config.data.path is where the run's data are now, not where its folder says
  bool continues = false;            // go on beyond the end; `config` may differ from the folder's in [train] and data
  bool names_data = false;           // with `continues`: the data may be others than before
};

// Whether the run goes on, or went on, beyond an end: its data may be others than those that its model was made for.
inline bool was_continued(const TrainRequest& request) {
  return request.continues || request.config.train.continued > 0;
}

// The job is of the same config. Throws UserError (a damaged checkpoint), Failure (a full disk; a loss that is not
// finite). Whatever happens, the last checkpoint that was written stays.
TrainResult train(const TrainRequest& request, Job& job, const Observer& observer);

}  // namespace cosformer::train
