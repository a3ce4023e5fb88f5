// A training with what people see of it: the log, the progress line, the end.
#pragma once

#include <string>

#include "base/files/appended_file.h"
#include "train/trainer.h"

namespace cosformer::cli {

// Lines go to the terminal and, with the time, to RUN/log.txt. Throws Failure, as on a full disk.
class RunLog {
 public:
  explicit RunLog(const std::string& run);
  void write(const std::string& line);
  void write_note(const std::string& note);  // nothing of an empty one

 private:
  AppendedFile file_;
};

// Trains to the end. Throws Interrupted when asked to stop, after saying how to go on.
train::TrainResult run_job(const train::TrainRequest& request, train::Job& job, RunLog& log);

}  // namespace cosformer::cli
