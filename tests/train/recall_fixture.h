// Small models on small texts of the task recall.
#pragma once

#include <string>
#include <vector>

#include "train/jobs/recall_job.h"
#include "train/run_fixture.h"

namespace cosformer::train {

inline runs::RunConfig small_recall_run(const std::vector<std::string>& assignments) {
  runs::RunConfig config;
  Settings settings;
  add_settings(settings, config);
  std::vector<std::string> all{
      "data.task=recall",      "recall.pairs=4",    "recall.length=32",       "recall.keys=16",
      "recall.values=16",      "recall.fillers=4",  "data.generate_train=80", "data.generate_valid=20",
      "data.generate_test=30", "model.layers=1",    "model.width=16",         "model.heads=2",
      "model.feed_forward=32", "model.dropout=0.1", "train.batch_size=8",     "train.lr=0.01",
      "train.log_every=3",     "train.device=cpu",  "train.steps=24",         "train.eval_every=10"};
  all.insert(all.end(), assignments.begin(), assignments.end());
  for (const std::string& assignment : all) settings.assign(assignment);
  runs::apply_presets(config, settings);
  require_possible(config);
  return config;
}

inline TrainResult train_recall_in(const std::string& folder, const runs::RunConfig& config, Watched& watched) {
  RecallJob job(config);
  if (!runs::is_run(folder)) runs::create_run(folder, config);
  return train({folder, config, {}}, job, watched.observer());
}

}  // namespace cosformer::train
