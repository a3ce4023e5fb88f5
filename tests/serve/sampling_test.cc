#include "serve/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "serve/stop_filter.h"

namespace cosformer::serve {
namespace {

std::vector<float> random_logits(std::mt19937& random, std::size_t count) {
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(count);
  for (float& x : logits) x = normal(random);
  return logits;
}

std::vector<double> softmax(std::vector<double> x) {
  const double most = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value - most);
  for (double& value : x) value /= sum;
  return x;
}

// The definitions, one token at a time, each in quadratic time: token i stays if ...
std::vector<double> defined(std::vector<double> p, const SamplingOptions& o) {
  const auto filter = [&p](const auto& stays) {
    std::vector<double> kept = p;
    for (std::size_t i = 0; i < p.size(); ++i) kept[i] = stays(i) ? p[i] : 0;
    const double sum = std::accumulate(kept.begin(), kept.end(), 0.0);
    for (double& x : kept) x /= sum;
    p = kept;
  };
  const auto likelier = [&p](std::size_t i) {
    std::vector<std::size_t> all;
    for (std::size_t j = 0; j < p.size(); ++j) {
      if (p[j] > p[i] || (p[j] == p[i] && j < i)) all.push_back(j);
    }
    return all;
  };
  if (o.top_k > 0) filter([&](std::size_t i) { return likelier(i).size() < static_cast<std::size_t>(o.top_k); });
  if (o.top_p < 1) {
    filter([&](std::size_t i) {
      double before = 0;
      for (const std::size_t j : likelier(i)) before += p[j];
      return before < o.top_p - 1e-12;
    });
  }
  if (o.min_p > 0) filter([&](std::size_t i) { return p[i] >= o.min_p * *std::max_element(p.begin(), p.end()); });
  return p;
}

TEST(Sampling, FiltersAreWhatTheirDefinitionsSay) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const std::vector<float> logits = random_logits(random, 40);
    SamplingOptions o;
    o.temperature = 0.3 + 0.01 * static_cast<double>(random() % 200);
    if (random() % 2 == 0) o.top_k = static_cast<std::int64_t>(random() % 45);
    if (random() % 2 == 0) o.top_p = 0.01 + 0.01 * static_cast<double>(random() % 99);
    if (random() % 2 == 0) o.min_p = 0.01 * static_cast<double>(random() % 100);
    std::vector<double> scaled(logits.begin(), logits.end());
    for (double& x : scaled) x /= o.temperature;
    const std::vector<double> expected = defined(softmax(scaled), o);
    const std::vector<double> got = next_token_probabilities(logits, {}, {}, o);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t at = 0; at < got.size(); ++at) EXPECT_NEAR(got[at], expected[at], 1e-12) << round;
  }
}

TEST(Sampling, RepetitionPenaltyTouchesRecentTokensOnce) {
  const std::vector<float> logits{2, -2, 1, 0};
  const std::vector<std::int32_t> recent{0, 1, 0};
  SamplingOptions o;
  o.repetition_penalty = 2;
  const std::vector<double> got = next_token_probabilities(logits, recent, {}, o);
  const std::vector<double> expected = softmax({1, -4, 1, 0});
  for (std::size_t at = 0; at < 4; ++at) EXPECT_NEAR(got[at], expected[at], 1e-15);
}

TEST(Sampling, TemperatureZeroTakesTheLikeliestThatIsNotForbidden) {
  const std::vector<float> logits{1, 5, 4, 4};
  const std::vector<std::int32_t> forbidden{1};
  SamplingOptions o;
  o.temperature = 0;
  EXPECT_EQ(next_token_probabilities(logits, {}, forbidden, o), (std::vector<double>{0, 0, 1, 0}));
}

TEST(Sampling, ChoicesFollowTheProbabilities) {
  const std::vector<double> p{0.25, 0, 0.5, 0.25};
  EXPECT_EQ(choose(p, 0), 0);
  EXPECT_EQ(choose(p, 0.2499), 0);
  EXPECT_EQ(choose(p, 0.25), 2);
  EXPECT_EQ(choose(p, 0.7499), 2);
  EXPECT_EQ(choose(p, 0.75), 3);
  EXPECT_EQ(choose(std::vector<double>{0.5, 0.5 - 1e-12, 0}, 0.9999999999999), 1);
}

TEST(Sampling, NonsenseIsRefused) {
  SamplingOptions o;
  o.top_p = 0;
  EXPECT_THROW(o.require_possible(), UserError);
  const std::vector<float> broken{1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THROW(next_token_probabilities(broken, {}, {}, {}), Failure);
}

TEST(StopFilter, ShowsTheTextBeforeTheFirstStopHoweverItIsCut) {
  const std::string text = "one two\n\nthree END four";
  const auto shown = [&](std::vector<std::string> stops, std::mt19937& random) {
    StopFilter filter(std::move(stops));
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t count = 1 + random() % 5;
      result += filter.push(text.substr(at, count));
      at += count;
    }
    return result + filter.finish();
  };
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(shown({}, random), text);
    EXPECT_EQ(shown({"END"}, random), "one two\n\nthree ");
    EXPECT_EQ(shown({"END", "\n\n"}, random), "one two");
    EXPECT_EQ(shown({"four!", ""}, random), text);
    EXPECT_EQ(shown({"one"}, random), "");
  }
}

}  // namespace
}  // namespace cosformer::serve
