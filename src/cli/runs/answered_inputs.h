// The inputs of `cosformer predict` part by part, each with its place among the lines, and what is said of them in the
// end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/runs/predict_options.h"
#include "data/readers/unlabelled/prediction_stream.h"

namespace cosformer::cli {

class AnsweredInputs {
 public:
  // Both must outlive it.
  AnsweredInputs(const PredictOptions& options, const data::DataConfig& config, const data::DatasetInfo& info);

  // As data::PredictionStream, but no more than --first inputs. Notes are told.
  std::optional<data::PredictionInput> next();

  // Calls `answer(i)` for each example and `gap(name)` for each line without an input, in the order of the lines, and
  // writes out what they have printed.
  static void in_order(const data::PredictionInput& input, const std::function<void(std::size_t)>& answer,
                       const std::function<void(const std::string&)>& gap);

  std::optional<std::size_t> size() const { return stream_.size(); }

  // On standard error: rows that were left out, labels that were not known.
  void report() const;

 private:
  data::PredictionOptions reading_;
  data::PredictionStream stream_;
  std::size_t left_;
  data::LoadReport report_;
  data::UnknownLabels unknown_;
};

}  // namespace cosformer::cli
