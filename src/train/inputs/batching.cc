#include "train/inputs/batching.h"

#include <algorithm>

#include "runs/device.h"

namespace cosformer::train {

data::BatchOptions batch_options(const runs::TrainConfig& config, const models::InputConfig& input) {
  data::BatchOptions o;
  o.batch_size = static_cast<std::size_t>(config.batch_size);
  o.token_budget = config.token_budget;
  o.max_length = input.max_length;
  o.width_multiple = config.width_multiple;
  // Rounding up must not pass the model's greatest length.
  if (input.max_length % o.width_multiple != 0) o.width_multiple = 1;
  if (config.fixed_width) o.fixed_width = input.max_length;
  o.reading = input.vocabulary > 0 ? data::Reading::kTokens : data::Reading::kValues;
  return o;
}

EvaluationOptions evaluation_options(const runs::TrainConfig& config, const models::InputConfig& input,
                                     at::Device device) {
  EvaluationOptions options{device, runs::uses_bfloat16(config, device), batch_options(config, input), {}};
  if (config.eval_batch_size > 0) options.batches.batch_size = static_cast<std::size_t>(config.eval_batch_size);
  return options;
}

std::int64_t rows_of_width(const runs::TrainConfig& config, std::int64_t width) {
  const std::int64_t by_budget = config.token_budget / width;
  if (config.batch_size == 0) return std::max<std::int64_t>(by_budget, 1);
  if (config.token_budget == 0) return config.batch_size;
  return std::clamp<std::int64_t>(by_budget, 1, config.batch_size);
}

double tokens_of(const data::Dataset& dataset, std::int64_t longest) {
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < dataset.size(); ++i) {
    const data::Lengths lengths = dataset.lengths(i);
    tokens += std::min(lengths.first, longest) + std::min(lengths.second, longest);
  }
  return static_cast<double>(tokens);
}

}  // namespace cosformer::train
