// Writing with a carried state beside recomputing the whole text for each token.
#include <gtest/gtest.h>

#include "base/random.h"
#include "byte_model.h"

namespace cosformer::serve {
namespace {

class Generation : public ::testing::TestWithParam<std::string> {
 protected:
  void compare(const SamplingOptions& options, std::int64_t tokens) {
    at::NoGradGuard no_grad;
    models::LanguageModelConfig config = byte_model_config(GetParam(), tokens + 1);
    config.model.layers = 2;
    const auto model = models::seeded_model(config);
    const Generator generator(model, data::byte_tokenizer());
    Session session = generator.begin(23);
    std::vector<std::int64_t> text{data::byte_tokenizer()->end_of_document()};
    std::vector<std::int32_t> recent(text.begin(), text.end());
    const std::int32_t forbidden = data::byte_tokenizer()->mask();
    std::vector<std::int32_t> by_state, from_scratch;
    for (std::int64_t at = 0; at < tokens; ++at) {
      const at::Tensor hidden = model->hidden(at::tensor(text, at::kLong).unsqueeze(0));
      const at::Tensor logits = model->logits(hidden.select(1, hidden.size(1) - 1))[0].contiguous();
      const std::vector<double> p = next_token_probabilities(
          {logits.data_ptr<float>(), static_cast<std::size_t>(logits.numel())}, recent, {&forbidden, 1}, options);
      Random random(23, RandomStream::kGeneration, text.size());
      from_scratch.push_back(choose(p, random.unit()));
      by_state.push_back(generator.next(session, options));
      ASSERT_EQ(by_state.back(), from_scratch.back()) << "token " << at;
      text.push_back(from_scratch.back());
      recent.push_back(from_scratch.back());
      if (recent.size() > Session::kRecentTokens) recent.erase(recent.begin());
    }
    std::sort(by_state.begin(), by_state.end());
    const auto different = std::unique(by_state.begin(), by_state.end()) - by_state.begin();
    EXPECT_GT(different, 1) << "a text of one token proves nothing";
  }
};

TEST_P(Generation, ByStateEqualsFromScratchSampled) {
  SamplingOptions options;
  options.temperature = 0.8;
  options.top_p = 0.95;
  compare(options, 2000);
}

TEST_P(Generation, ByStateEqualsFromScratchGreedy) {
  SamplingOptions options;
  options.temperature = 0;
  options.repetition_penalty = 1.3;  // lest a greedy text repeats itself for ever
  compare(options, 500);
}

INSTANTIATE_TEST_SUITE_P(All, Generation, ::testing::Values("cosformer", "cosformer_plus", "softmax"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cosformer::serve
