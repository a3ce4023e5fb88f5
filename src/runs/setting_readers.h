// Which tasks read which settings: a table, so that a setting that would change nothing is refused by name.
//
// What the attention reads is in nn/mechanisms/attention_options.h; settings that need others (data.carry and a window)
// are checked by who reads them.
#pragma once

#include <string>
#include <vector>

#include "base/settings.h"
#include "data/tasks/task.h"

namespace cosformer::runs {

// The task as the table knows it: data.task, and "same_article" for retrieval with that source.
std::string reader_of(const data::DataConfig& config);
std::vector<std::string> setting_readers();

// Throws std::logic_error for a key that is not in the table.
bool is_read_by(const std::string& key, const std::string& reader);

// Keys that were set to something else than their default although the task does not read them. `settings` are a run's,
// as they were given: before presets.
std::vector<std::string> unread_settings(const Settings& settings, const data::DataConfig& config);

// Throws UserError that names them all and who reads them.
void require_read(const Settings& settings, const data::DataConfig& config);

// "data.train_limit (for classifiers and text_to_text)".
std::string with_readers(const std::string& key);

}  // namespace cosformer::runs
