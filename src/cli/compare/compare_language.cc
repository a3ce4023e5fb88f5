#include "cli/compare/compare_language.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cli/terminal/progress_line.h"
#include "data/baselines/lm_floor.h"
#include "models/language/language_model.h"
#include "runs/run_tokenizer.h"
#include "train/jobs/language_job.h"

namespace cosformer::cli {
namespace {

data::Progress progress(const std::string& what) {
  return progress_line(what, "B");
}

// The settings that decide which text is read, and how a tokenizer is learned from it.
std::string text_of(const runs::RunConfig& c) {
  std::string text;
  for (const std::string& part : {c.data.path, c.data.valid_path, c.data.test_path, c.text.documents, c.text.text_field,
                                  c.text.tokenizer, std::to_string(c.text.tokenizer_vocabulary),
                                  std::to_string(c.data.valid_fraction), std::to_string(c.data.test_fraction),
                                  std::to_string(c.data.split_seed), std::to_string(c.data.skip_bad_rows)}) {
    text += part + '\n';
  }
  return text;
}

}  // namespace

data::TokenizerPointer ComparedText::tokenizer_for(const runs::RunConfig& config, const std::string& folder) {
  const bool has_own = runs::is_run(folder) && runs::tokenizer_of_run(folder) != nullptr;
  if (!has_own && learned_ && learned_by_ == text_of(config)) return learned_;
  const data::TokenizerPointer tokenizer = train::tokenizer_for(config, folder, progress);
  learned_by_ = text_of(config);
  learned_ = tokenizer;
  return tokenizer;
}

std::int64_t ComparedText::parameters_of(const runs::RunConfig& config, const data::Tokenizer& tokenizer) {
  return models::LanguageModel(train::language_model_config(config, tokenizer)).parameter_count();
}

const train::LanguageData& ComparedText::open(const runs::RunConfig& config, const data::TokenizerPointer& tokenizer) {
  const std::string key = text_of(config) + tokenizer->hash();
  if (first_ && first_of_ == key) return *first_;
  if (other_ && other_of_ == key) return *other_;
  std::optional<train::LanguageData>& place = first_ ? other_ : first_;
  (first_ ? other_of_ : first_of_) = key;
  place = train::open_language_data(config, tokenizer, progress);
  return *place;
}

long long ComparedText::steps_of(const runs::RunConfig& config, const data::TokenizerPointer& tokenizer) {
  runs::RunConfig on_cpu = config;
  on_cpu.train.device = "cpu";  // nothing is computed
  const train::LanguageJob job(on_cpu, open(config, tokenizer));
  if (config.train.steps > 0) return config.train.steps;
  const double an_epoch =
      static_cast<double>(job.batches_in_first_epoch()) / static_cast<double>(config.train.accumulate);
  return std::max(1LL, std::llround(std::ceil(an_epoch * config.train.epochs)));
}

std::optional<TaskFloors> ComparedText::floors() const {
  if (!first_) return std::nullopt;
  TaskFloors result{task_, first_->description, {}, 0};
  for (const std::string& note : first_->notes) result.description += "; note: " + note;
  const data::Corpus& corpus = first_->corpus;
  const data::TextCounts& counts = corpus.test.counts();
  if (counts.tokens == 0 || counts.bytes == 0) return result;
  result.bits_per_nat = static_cast<double>(counts.tokens) / static_cast<double>(counts.bytes) / std::log(2.0);
  for (const data::LmFloor& floor : data::lm_floors(corpus.train, corpus.test, *corpus.tokenizer)) {
    result.floors.emplace_back(floor.rule, floor.nats / static_cast<double>(counts.tokens));
  }
  return result;
}

}  // namespace cosformer::cli
