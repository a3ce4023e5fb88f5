// The cells of a comparison that are language models: their text, their sizes, what counting reaches on it.
#pragma once

#include <optional>

#include "cli/compare/compare_results.h"
#include "runs/run_folder.h"
#include "train/inputs/language_data.h"

namespace cosformer::cli {

// One task's text. Models read it with one tokenizer unless their settings name another one.
class ComparedText {
 public:
  explicit ComparedText(std::string task) : task_(std::move(task)) {}

  // What the cell's run in `folder` reads with: the run's own where there is one, else the settings', which is learned
  // at most once. Throws UserError.
  data::TokenizerPointer tokenizer_for(const runs::RunConfig& config, const std::string& folder);

  // Parameters of the model. Throws UserError for one that cannot be.
  static std::int64_t parameters_of(const runs::RunConfig& config, const data::Tokenizer& tokenizer);

  // Optimiser steps of the run. Throws UserError for a run that cannot be trained.
  long long steps_of(const runs::RunConfig& config, const data::TokenizerPointer& tokenizer);

  // Of the first cell's text; none before steps_of was called.
  std::optional<TaskFloors> floors() const;

 private:
  const train::LanguageData& open(const runs::RunConfig& config, const data::TokenizerPointer& tokenizer);

  std::string task_;
  std::string learned_by_;  // the settings by which `learned_` was learned
  data::TokenizerPointer learned_;
  std::optional<train::LanguageData> first_, other_;
  std::string first_of_, other_of_;  // the settings and tokenizer of those
};

}  // namespace cosformer::cli
