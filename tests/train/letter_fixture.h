// A task that small classifiers learn in seconds, and trainings on it.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "train/jobs/classification_job.h"
#include "train/run_fixture.h"

namespace cosformer::train {

// `part(count)` makes so many examples.
template <class Part>
data::TaskData task_of(const Part& part, std::int64_t max_length) {
  data::TaskData task;
  task.train = part(240);
  task.valid = part(60);
  task.test = part(60);
  task.max_length = max_length;
  task.reading = data::Reading::kTokens;
  return task;
}

// Which of three letters is in the text? The rest is noise; lengths differ.
inline data::TaskData letter_task(bool with_pairs = false, unsigned seed = 7, std::size_t longest = 60) {
  std::mt19937 random(seed);
  const auto part = [&](int count) {
    data::DatasetBuilder builder(data::ElementType::kU8, with_pairs);
    for (int at = 0; at < count; ++at) {
      const int label = static_cast<int>(random() % 3);
      std::string text(20 + random() % (longest - 20), ' ');
      for (char& c : text) c = static_cast<char>('m' + random() % 10);
      text[random() % text.size()] = static_cast<char>('a' + label);
      if (with_pairs) {
        builder.add_pair(text, std::string(10, 'z'), label);
      } else {
        builder.add(text, label);
      }
    }
    data::DatasetInfo info;
    info.name = "letters";
    info.vocabulary = data::kByteVocabulary;
    info.classes = {"a", "b", "c"};
    return builder.finish(info);
  };
  return task_of(part, static_cast<std::int64_t>(longest) + 4);
}

inline runs::RunConfig small_run(const std::vector<std::string>& assignments) {
  runs::RunConfig config;
  Settings settings;
  add_settings(settings, config);
  for (const char* assignment : {"model.layers=1", "model.width=16", "model.heads=2", "model.feed_forward=32",
                                 "train.batch_size=16", "train.lr=0.01", "train.log_every=1", "train.device=cpu",
                                 "model.attention=cosformer_plus", "train.steps=40", "train.eval_every=10"}) {
    settings.assign(assignment);
  }
  for (const std::string& assignment : assignments) settings.assign(assignment);
  models::apply_preset(config.model, settings);
  return config;
}

inline TrainResult train_in(const std::string& folder, const runs::RunConfig& config, const data::TaskData& task,
                            Watched& watched) {
  if (!runs::is_run(folder)) runs::create_run(folder, config);
  ClassificationJob job(config, task);
  return train({folder, config, {}}, job, watched.observer());
}

}  // namespace cosformer::train
