// Small language models on small texts.
#pragma once

#include <string>
#include <vector>

#include "runs/run_tokenizer.h"
#include "train/jobs/language_job.h"
#include "train/run_fixture.h"

namespace cosformer::train {

// `task` is lm or mlm; the text's file and the cache lie in `folder`.
inline runs::RunConfig small_language_run(const cosformer::testing::TemporaryDirectory& folder, const std::string& task,
                                          const std::vector<std::string>& assignments) {
  runs::RunConfig config;
  Settings settings;
  add_settings(settings, config);
  std::vector<std::string> all{"data.task=" + task,
                               "data.path=" + folder.file("text.txt"),
                               "data.cache=" + folder.file("cache"),
                               "data.window=16",
                               "data.valid_fraction=0.1",
                               "data.test_fraction=0.1",
                               "model.layers=1",
                               "model.width=16",
                               "model.heads=2",
                               "model.feed_forward=32",
                               "model.dropout=0.1",
                               "train.batch_size=4",
                               "train.lr=0.01",
                               "train.log_every=1",
                               "train.device=cpu",
                               "train.steps=24",
                               "train.eval_every=10"};
  all.insert(all.end(), assignments.begin(), assignments.end());
  for (const std::string& assignment : all) settings.assign(assignment);
  runs::apply_presets(config, settings);
  require_possible(config);
  return config;
}

inline LanguageData open_text(const runs::RunConfig& config, const std::string& run = "no such run") {
  return open_language_data(config, tokenizer_for(config, run, {}), {});
}

inline TrainResult train_language_in(const std::string& folder, const runs::RunConfig& config, Watched& watched) {
  const LanguageData data = open_text(config, folder);
  LanguageJob job(config, data);
  if (!runs::is_run(folder)) runs::create_run(folder, config);
  runs::keep_tokenizer(folder, *data.corpus.tokenizer);
  return train({folder, config, {}}, job, watched.observer());
}

// A text of words in random order, some lines of it.
inline std::string random_text(std::size_t words, unsigned seed = 3) {
  static const char* const kWords[] = {"the", "cat", "sat", "on", "a", "mat", "and", "dreamt", "of", "fish"};
  std::string text;
  std::uint32_t state = seed;
  for (std::size_t at = 0; at < words; ++at) {
    state = state * 1664525U + 1013904223U;
    text += kWords[(state >> 16) % 10];
    text += at % 9 == 8 ? '\n' : ' ';
  }
  return text;
}

}  // namespace cosformer::train
