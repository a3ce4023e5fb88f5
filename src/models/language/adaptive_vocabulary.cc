#include "models/language/adaptive_vocabulary.h"

#include <cmath>

#include <ATen/ATen.h>

#include "models/language/lm_losses.h"
#include "nn/embedding.h"
#include "nn/full_precision.h"
#include "nn/row_products.h"

namespace cosformer::models {

AdaptiveVocabulary::AdaptiveVocabulary(const AdaptiveVocabularyConfig& config) : config_(config) {
  const auto parameter = [&](const std::string& name, std::int64_t rows, std::int64_t columns, double deviation) {
    return register_parameter(name, at::empty({rows, columns}).normal_(0, deviation));
  };
  const auto inverse_root = [](std::int64_t n) { return 1 / std::sqrt(static_cast<double>(n)); };
  std::int64_t narrow = config.width;
  for (std::size_t at = 0; at <= config.cutoffs.size(); ++at) {
    const std::string number = std::to_string(at);
    Band band;
    band.begin = at == 0 ? 0 : config.cutoffs[at - 1];
    band.size = (at < config.cutoffs.size() ? config.cutoffs[at] : config.vocabulary) - band.begin;
    if (at > 0) {
      // A narrow embedding has as long a projection as a wide one is itself.
      narrow /= config.divisor;
      band.in_proj = parameter("in_proj_" + number, config.width, narrow, inverse_root(narrow));
      band.out_proj = parameter("out_proj_" + number, narrow, config.width, inverse_root(config.width));
    }
    band.embedding = parameter("embedding_" + number, band.size, narrow, config.deviation);
    band.out_weight =
        config.tied ? band.embedding : parameter("out_weight_" + number, band.size, narrow, inverse_root(narrow));
    bands_.push_back(band);
  }
  const auto others = static_cast<std::int64_t>(config.cutoffs.size());
  band_weight_ = parameter("band_weight", others, config.width, config.deviation);
}

at::Tensor AdaptiveVocabulary::head_weight() const {
  // named_parameters() of the module are what an optimiser and a loader change, in place: handles stay valid.
  return at::cat({bands_.front().out_weight, band_weight_});
}

at::Tensor AdaptiveVocabulary::embed(const at::Tensor& tokens) {
  at::Tensor sum;
  for (const Band& band : bands_) {
    const at::Tensor place = (tokens - band.begin).to(at::kLong);
    const at::Tensor inside = (place >= 0).logical_and(place < band.size).unsqueeze(-1);
    at::Tensor x = nn::embed(band.embedding, place.clamp(0, band.size - 1));
    if (band.in_proj.defined()) x = nn::product(x, band.in_proj);
    x = x * inside.to(x.scalar_type());
    sum = sum.defined() ? sum + x : x;
  }
  return sum;
}

at::Tensor AdaptiveVocabulary::log_probabilities(const at::Tensor& hidden) {
  const at::Tensor head = at::log_softmax(nn::at_least_float(nn::product(hidden, head_weight())), -1);
  std::vector<at::Tensor> parts{head.narrow(-1, 0, bands_.front().size)};
  for (std::size_t at = 1; at < bands_.size(); ++at) {
    const Band& band = bands_[at];
    const at::Tensor inner = nn::product(nn::product(hidden, band.out_proj), band.out_weight);
    const std::int64_t chosen = bands_.front().size + static_cast<std::int64_t>(at) - 1;
    parts.push_back(at::log_softmax(nn::at_least_float(inner), -1) + head.narrow(-1, chosen, 1));
  }
  return at::cat(parts, -1);
}

at::Tensor AdaptiveVocabulary::losses(const at::Tensor& hidden, const at::Tensor& given) {
  const at::Tensor targets = given.to(at::kLong);
  at::Tensor head_targets = targets;
  for (std::size_t at = 1; at < bands_.size(); ++at) {
    const std::int64_t chosen = bands_.front().size + static_cast<std::int64_t>(at) - 1;
    const Band& band = bands_[at];
    const at::Tensor inside = (targets >= band.begin).logical_and(targets < band.begin + band.size);
    head_targets = head_targets.masked_fill(inside, chosen);
  }
  at::Tensor sum = token_losses(hidden, head_weight(), head_targets);
  for (std::size_t at = 1; at < bands_.size(); ++at) {
    const Band& band = bands_[at];
    const at::Tensor members =
        (targets >= band.begin).logical_and(targets < band.begin + band.size).nonzero().squeeze(1);
    if (members.numel() == 0) continue;
    const at::Tensor inner = at::matmul(hidden.index_select(0, members), band.out_proj.t());
    const at::Tensor within = token_losses(inner, band.out_weight, targets.index_select(0, members) - band.begin);
    sum = sum.index_add(0, members, within.to(sum.scalar_type()));
  }
  return sum;
}

}  // namespace cosformer::models
