// Small encoder-decoders on small tables of pairs.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "runs/run_tokenizer.h"
#include "train/jobs/text_to_text_job.h"
#include "train/run_fixture.h"

namespace cosformer::train {

// The pairs' file lies in `folder`.
inline runs::RunConfig small_text_to_text_run(const cosformer::testing::TemporaryDirectory& folder,
                                              const std::vector<std::string>& assignments) {
  runs::RunConfig config;
  Settings settings;
  add_settings(settings, config);
  std::vector<std::string> all{"data.task=text_to_text", "data.path=" + folder.file("pairs.tsv"),
                               "model.layers=1",         "model.width=16",
                               "model.heads=2",          "model.feed_forward=32",
                               "model.dropout=0.1",      "train.batch_size=8",
                               "train.lr=0.01",          "train.log_every=3",
                               "train.device=cpu",       "train.steps=24",
                               "train.eval_every=10",    "text_to_text.decode_examples=10"};
  all.insert(all.end(), assignments.begin(), assignments.end());
  for (const std::string& assignment : all) settings.assign(assignment);
  runs::apply_presets(config, settings);
  require_possible(config);
  return config;
}

inline TrainResult train_text_to_text_in(const std::string& folder, const runs::RunConfig& config, Watched& watched) {
  const TextToTextData data = open_text_to_text_data(config, folder, {});
  TextToTextJob job(config, data);
  if (!runs::is_run(folder)) runs::create_run(folder, config);
  runs::keep_tokenizer(folder, *data.tokenizer);
  return train({folder, config, {}}, job, watched.observer());
}

// A table of words of random letters, and the same backwards.
inline std::string reversals(std::size_t rows, std::size_t longest, unsigned seed = 5) {
  std::string table = "source\ttarget\n";
  std::uint32_t state = seed;
  const auto draw = [&](std::uint32_t below) {
    state = state * 1664525U + 1013904223U;
    return (state >> 16) % below;
  };
  for (std::size_t row = 0; row < rows; ++row) {
    std::string word(1 + draw(static_cast<std::uint32_t>(longest)), ' ');
    for (char& letter : word) letter = static_cast<char>('a' + draw(6));
    table += word + '\t' + std::string(word.rbegin(), word.rend()) + '\n';
  }
  return table;
}

}  // namespace cosformer::train
