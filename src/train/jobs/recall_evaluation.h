// How well a language model recalls: over all queries, by the number of pairs in a text, and by distance.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/tasks/recall/recall_text.h"
#include "models/language/language_model.h"
#include "train/jobs/job.h"

namespace cosformer::train {

struct RecallEvaluationOptions {
  at::Device device = at::kCPU;
  bool bfloat16 = false;
  std::int64_t rows = 32;  // texts that are read at once
  std::uint64_t texts = 0;
  data::RecallSeeds seeds;
  data::RecallPart part = data::RecallPart::kTest;
  StopRequest stop;                                 // may be empty
  std::function<void(std::size_t texts)> progress;  // may be empty
};

// Queries whose number of pairs, or distance, is from `first` to `last`; the ranges are 1, 2, 3-4, 5-8, …, the last one
// cut where the settings end.
struct RecallRange {
  std::int64_t first = 0, last = 0;
  std::uint64_t queries = 0, right = 0;

  double accuracy() const { return static_cast<double>(right) / static_cast<double>(queries); }
};

struct RecallEvaluation {
  double nats = 0;  // −ln p of the wanted values
  std::uint64_t queries = 0, right = 0, texts = 0, batches = 0;
  std::vector<RecallRange> by_pairs, by_distance;  // rising; ranges without queries left out
  double seconds = 0;

  double loss() const { return nats / static_cast<double>(queries); }
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(queries); }
};

// The first texts of a part. Throws EvaluationStopped.
RecallEvaluation evaluate_recall(models::LanguageModel& model, const data::RecallConfig& config,
                                 const RecallEvaluationOptions& options);

// Loss and accuracy, then "accuracy_pairs_3_4" and "accuracy_distance_65_128" for every range.
PartResult part_result(const RecallEvaluation& evaluation);

}  // namespace cosformer::train
