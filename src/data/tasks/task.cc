// open_task: what every source has in common once its files are read.
#include "data/tasks/task.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "data/dataset/class_counts.h"
#include "data/dataset/smaller_images.h"
#include "data/tasks/task_parts.h"

namespace cosformer::data {
namespace {

// Settings that would be passed over in silence.
void require_used(const DataConfig& config) {
  const bool own = task_kind(config.task).usual_path == nullptr, text = config.task == "text";
  const auto refuse = [&](const char* key) {
    throw UserError(
        fmt::format("{} is set, but the task '{}' finds its parts by their names; expected it empty. The task reads {}",
                    std::string(key), config.task, layout_of(config.task)));
  };
  if (!config.valid_path.empty() && !own && !text) refuse("data.valid_path");
  if (!config.test_path.empty() && !own && !text && config.task != "image") refuse("data.test_path");
}

struct NamedPart {
  const char* name;
  DatasetPointer* part;
};

// Holds out what the source does not have.
void complete(const DataConfig& config, TaskParts& parts) {
  const auto seed = static_cast<std::uint64_t>(config.split_seed);
  const auto take = [&](const char* key, double fraction, DatasetPointer& part, std::uint64_t part_seed) {
    if (fraction == 0) {
      throw UserError(fmt::format(
          "{} is 0, but the task '{}' has no such part of its own; expected a fraction above 0, or the path of a file",
          std::string(key), config.task));
    }
    HeldOut held = hold_out(parts.train, fraction, part_seed);
    parts.train = std::move(held.kept);
    part = std::move(held.held_out);
  };
  if (!parts.test) take("data.test_fraction", config.test_fraction, parts.test, seed + 1);
  if (!parts.valid) take("data.valid_fraction", config.valid_fraction, parts.valid, seed);
}

// One model has to suit all parts.
void require_alike(const TaskParts& parts) {
  const DatasetInfo& train = parts.train->info();
  const auto size = [](const DatasetInfo& info) { return fmt::format("{} x {}", info.width, info.height); };
  for (const auto& [name, part] : {std::pair{"validation", parts.valid}, {"test", parts.test}}) {
    const DatasetInfo& info = part->info();
    if (info.width != train.width || info.height != train.height) {
      throw UserError(fmt::format("the images of the {} part have {} pixels; expected {} as in the training part", name,
                                  size(info), size(train)));
    }
    if (info.classes != train.classes || info.vocabulary != train.vocabulary || info.pairs != train.pairs ||
        info.content != train.content) {
      throw UserError(fmt::format(
          "the {} part ('{}') has other classes or symbols than the training part ('{}'); expected parts of one task",
          name, info.name, train.name));
    }
  }
}

void cut_and_limit(const DataConfig& config, TaskParts& parts) {
  const std::int64_t most = effective_max_length(config);
  const DatasetInfo& info = parts.train->info();
  if (most > 0 && info.width > 0 && most < info.width * info.height) {
    throw UserError(
        fmt::format("data.max_length is {}, but an image is {} pixels; a part of one is no image: leave it at 0", most,
                    info.width * info.height));
  }
  const std::int64_t limits[] = {config.train_limit, config.valid_limit, config.test_limit};
  std::size_t number = 0;
  for (const NamedPart& named :
       {NamedPart{"training", &parts.train}, {"validation", &parts.valid}, {"test", &parts.test}}) {
    DatasetPointer& part = *named.part;
    if (most > 0 && part->info().max_length > most) {
      std::size_t longer = 0;
      for (std::size_t i = 0; i < part->size(); ++i) {
        const Lengths lengths = part->lengths(i);
        longer += std::max(lengths.first, lengths.second) > most ? 1 : 0;
      }
      part = shorten(part, most);
      if (longer > 0) {
        parts.notes.push_back(fmt::format("{} of {} {} sequences are longer than {} and were cut", longer, part->size(),
                                          named.name, most));
      }
    }
    const std::int64_t limit = limits[number++];
    if (limit > 0) part = sample(part, static_cast<std::size_t>(limit), static_cast<std::uint64_t>(config.split_seed));
  }
}

void add_report_notes(const DataConfig& config, const LoadReport& report, std::vector<std::string>& notes) {
  if (report.rows_skipped > 0) {
    std::string note = fmt::format("{} bad rows were left out", report.rows_skipped);
    for (const std::string& reason : report.first_reasons) note += "\n  " + reason;
    notes.push_back(note);
  }
  if (report.empty_images > 0)
    notes.push_back(fmt::format("{} image files without a byte were left out", report.empty_images));
  if (report.texts_cut > 0) {
    notes.push_back(fmt::format("{} texts are longer than {} bytes (data.max_length) and were cut", report.texts_cut,
                                effective_max_length(config)));
  }
}

}  // namespace

TaskData open_task(const DataConfig& config, const Progress& progress) {
  TaskData data;
  data.reading = reading_of(config);
  require_used(config);
  TaskParts parts = task_kind(config.task).open(config, progress);
  complete(config, parts);
  require_alike(parts);
  if (config.shrink > 1) {
    for (DatasetPointer* part : {&parts.train, &parts.valid, &parts.test}) {
      *part = smaller_images(*part, config.shrink);
    }
  }
  cut_and_limit(config, parts);

  const DatasetInfo& info = parts.train->info();
  if (data.reading == Reading::kTokens && info.vocabulary == 0) {
    throw UserError(
        fmt::format("data.reading is tokens, but '{}' holds real numbers; expected auto or values", config.task));
  }
  if (data.reading == Reading::kValues && info.content == Content::kTokens) {
    throw UserError(fmt::format("data.reading is values, but '{}' holds tokens; expected auto or tokens", config.task));
  }
  data.train = std::move(parts.train);
  data.valid = std::move(parts.valid);
  data.test = std::move(parts.test);
  for (const DatasetPointer& part : {data.train, data.valid, data.test}) {
    data.max_length = std::max(data.max_length, part->info().max_length);
  }
  data.notes = std::move(parts.notes);
  add_report_notes(config, parts.report, data.notes);
  data.report = std::move(parts.report);
  data.valid_is_test = parts.valid_is_test;
  for (const std::string& doubt : doubts_about_classes(class_counts(data))) data.notes.push_back(doubt);
  data.description =
      fmt::format("{}: {}; {} training, {} validation, {} test examples; {}length up to {}", config.task, parts.source,
                  data.train->size(), data.valid->size(), data.test->size(),
                  info.classes.empty() ? "" : fmt::format("{} classes; ", info.classes.size()), data.max_length);
  return data;
}

}  // namespace cosformer::data
