// Inputs of predictions that stand one a line: texts, pairs of texts with a tab between them, ListOps expressions.
#pragma once

#include <string>
#include <string_view>

#include "data/readers/unlabelled/prediction_input.h"

namespace cosformer::data {

class PredictionLines {
 public:
  // `name` is for messages; the others must outlive it.
  PredictionLines(std::string name, const DataConfig& config, const DatasetInfo& info, RowPolicy rows);

  // Whole lines, that follow those of the call before. Blank lines, and those that are left out by the policy, are
  // gaps. Throws UserError for a line that cannot be used, unless such lines are left out.
  PredictionInput read(std::string_view content);

 private:
  std::string name_;
  const DataConfig& config_;
  const DatasetInfo& info_;
  RowPolicy rows_;
  std::uint64_t line_ = 0;  // so many were read before
};

// Throws UserError: not one input could be used.
[[noreturn]] void refuse_empty(const std::string& name, const LoadReport& report);

}  // namespace cosformer::data
