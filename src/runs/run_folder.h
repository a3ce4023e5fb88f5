// A run as a folder: what was asked for, what came out, and everything needed to go on.
//
//   config.toml         the effective settings
//   checkpoints/        the last two (checkpoint.h)
//   best.safetensors    the weights that did best on the validation part, the model's config in their metadata
//   metrics.jsonl       losses and evaluations by step
//   tensorboard/        the same for TensorBoard
//   data.json           what the data hold, class by class (data_record.h)
//   log.txt             what was printed
//   tokenizer           where texts are read as tokens of a language model: what makes them
//   result.json         the end: what the test part gives
#pragma once

#include <string>

#include "base/files/file_descriptor.h"
#include "runs/run_config.h"

namespace cosformer::runs {

bool is_run(const std::string& folder);

// Makes the folder and writes config.toml; a folder that holds something else than a run is refused.
void create_run(const std::string& folder, const RunConfig& config);
// Replaces the settings of a run. For who holds its lock.
void write_settings(const std::string& folder, const RunConfig& config);
// Removes what processes that were killed while they wrote one of the run's files have left. For who holds its lock.
void remove_unfinished(const std::string& folder);
// Of a run's folder, or of its bundle (runs/run_bundle.h), which every function here that only reads takes in its
// place. Throws UserError when it is neither.
RunConfig read_run(const std::string& folder);

// One process at a time trains in a folder: the lock is held for the object's lifetime. Throws UserError when another
// process holds it.
class RunLock {
 public:
  explicit RunLock(const std::string& folder);

 private:
  FileDescriptor file_;
};

std::string best_weights_path(const std::string& folder);
std::string trained_weights_path(const std::string& folder);  // throws UserError where there are none

}  // namespace cosformer::runs
