// What `cosformer compare` is asked to do, as data: tasks × models × seeds, and the settings that they share.
//
// A file of settings as `cosformer train` reads it, with three things more: [compare] says what is compared, a [[task]]
// is a task with settings of its own, a [[cell]] a model that is a mechanism with settings of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/formats/toml_values.h"
#include "runs/run_folder.h"

namespace cosformer::cli {

struct CompareFlags {
  std::string config, task, attention, lengths, out, data_path, device;
  std::vector<std::string> assignments;  // of --set
  long long seeds = 0, steps = 0;
  bool speed_only = false, unmatched = false;
};

struct ComparedTask {
  std::string name;
  std::vector<TomlValue> file;           // of its config, where it names one
  std::vector<std::string> assignments;  // after those
};

struct ComparedModel {
  std::string name, attention;
  std::vector<std::string> assignments;
  bool is_variant = false;  // a [[cell]]
};

struct SpeedConfig {
  std::vector<long long> lengths;  // none: speed by length is not measured
  std::int64_t batch = 1;
  double seconds = 0.5;          // how long steps are repeated
  double step_seconds = 10;      // what takes longer a step is not measured
  double process_seconds = 120;  // nor what takes longer in all
  std::string precision = "fp32";
};

struct CompareConfig {
  std::string name;  // of the default folder
  std::vector<TomlValue> settings;
  std::vector<std::string> assignments;
  std::vector<ComparedTask> tasks;
  std::vector<ComparedModel> models;
  std::int64_t first_seed = 0, seeds = 1;
  bool match_parameters = true;
  std::int64_t threads = 0;  // of every process; 0: as OMP_NUM_THREADS says, or all cores
  SpeedConfig speed;
};

// Throws UserError.
CompareConfig compare_config_from(const CompareFlags& flags);

// The settings of one cell before parameters are matched: the file's, the task's, --set, the model's. Throws UserError
// for what cannot be.
runs::RunConfig run_config_of(const CompareConfig& config, const ComparedTask& task, const ComparedModel& model,
                              std::int64_t seed);

}  // namespace cosformer::cli
