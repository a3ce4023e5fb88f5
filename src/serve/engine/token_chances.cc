#include "serve/engine/token_chances.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ATen.h>

namespace cosformer::serve {

TokenChance chance_of(const Session& session, std::int32_t token, int count) {
  const at::Tensor logits = session.logits.contiguous();
  const std::span<const float> values{logits.data_ptr<float>(), static_cast<std::size_t>(logits.numel())};
  const double greatest = static_cast<double>(*std::max_element(values.begin(), values.end()));
  double sum = 0;
  for (const float value : values) sum += std::exp(static_cast<double>(value) - greatest);
  const auto log_probability = [&](std::int32_t id) {
    return static_cast<double>(values[static_cast<std::size_t>(id)]) - greatest - std::log(sum);
  };
  TokenChance chance{token, log_probability(token), {}};
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto wanted = std::min(order.size(), static_cast<std::size_t>(count));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(wanted), order.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      const float x = values[static_cast<std::size_t>(a)], y = values[static_cast<std::size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  for (std::size_t at = 0; at < wanted; ++at) chance.likeliest.emplace_back(order[at], log_probability(order[at]));
  return chance;
}

}  // namespace cosformer::serve
