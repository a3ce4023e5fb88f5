// What a trained model is asked about, part by part: inputs that stand one a line as they come, others a few hundred at
// a time, so that answers need not wait for the last input.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/readers/unlabelled/line_source.h"
#include "data/readers/unlabelled/prediction_lines.h"

namespace cosformer::data {

class PredictionStream {
 public:
  // As read_prediction_input; `config`, `info` and `options` must outlive it.
  PredictionStream(const std::string& path, const DataConfig& config, const DatasetInfo& info,
                   const PredictionOptions& options);

  // The next inputs, after waiting for the first of them; nothing at the end. Reports and notes are of these alone.
  // Throws UserError with the place and the reason, also when there was not one input in all.
  std::optional<PredictionInput> next();

  // How many inputs there are in all, where that is known: what does not come line by line is read at once.
  std::optional<std::size_t> size() const;

 private:
  std::optional<PredictionInput> next_lines();

  std::string name_;
  std::unique_ptr<LineSource> source_;  // of lines
  std::unique_ptr<PredictionLines> lines_;
  PredictionInput whole_;  // of everything else
  std::size_t given_ = 0;
  LoadReport skipped_;
};

}  // namespace cosformer::data
