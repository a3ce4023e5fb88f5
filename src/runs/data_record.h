// RUN/data.json: what a run was trained on, for people who look at it later.
#pragma once

#include <string>
#include <vector>

#include "data/dataset/class_counts.h"

namespace cosformer::runs {

struct DataRecord {
  std::string description;         // one line: task, source, sizes
  std::vector<std::string> notes;  // what one should know before believing a number
  std::vector<data::ClassCount> classes;
};

DataRecord data_record_of(const data::TaskData& task);

// Writes it in a run that has none yet.
void keep_data_record(const std::string& run, const DataRecord& record);

// An empty one where there is none, as in runs of before, or where it is not as it was written.
DataRecord data_record_of_run(const std::string& run);

}  // namespace cosformer::runs
