// Perplexities and bits against sums that are made by hand.
#include "train/jobs/language_evaluation.h"

#include <cmath>
#include <sstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/baselines/lm_floor.h"
#include "train/language_fixture.h"

namespace cosformer::train {
namespace {

using cosformer::testing::TemporaryDirectory;
using cosformer::testing::write_bytes;

class LanguageEvaluationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    text_ = random_text(300);
    write_bytes(folder_.file("text.txt"), random_text(3000, 5));
    write_bytes(folder_.file("test.txt"), text_);
  }

  // A model with weights that make tokens matter, and the text it is judged by.
  struct Case {
    LanguageData data;
    std::shared_ptr<models::LanguageModel> model;
  };
  Case make(const std::vector<std::string>& assignments) {
    std::vector<std::string> all{"data.test_path=" + folder_.file("test.txt"), "data.documents=stream",
                                 "data.max_length=64", "model.positions=none"};
    all.insert(all.end(), assignments.begin(), assignments.end());
    const runs::RunConfig config = small_language_run(folder_, "lm", all);
    Case result{open_text(config), nullptr};
    at::manual_seed(5);
    result.model =
        std::make_shared<models::LanguageModel>(language_model_config(config, *result.data.corpus.tokenizer));
    at::NoGradGuard no_grad;
    for (const auto& item : result.model->named_parameters()) {
      if (item.key().find("embedding") != std::string::npos) item.value().normal_(0, 1);
    }
    return result;
  }

  TemporaryDirectory folder_;
  std::string text_;
};

TEST_F(LanguageEvaluationTest, EqualsANaiveSum) {
  for (const char* tokenizer : {"bytes", "words"}) {
    SCOPED_TRACE(tokenizer);
    const Case c = make({std::string("data.tokenizer=") + tokenizer});
    const data::Tokenizer& t = *c.data.corpus.tokenizer;
    LanguageEvaluationOptions options;
    options.rows = 3;
    options.window = 32;
    const LanguageEvaluation e = evaluate_language(*c.model, c.data.corpus.test, c.data.corpus.tokenizer, options);

    // Three stretches of as many windows each, every window by itself.
    const std::vector<std::int32_t> tokens = t.encode(text_);
    c.model->eval();
    const auto count = static_cast<std::int64_t>(tokens.size());
    const std::int64_t windows = (count + 31) / 32;
    double nats = 0;
    at::NoGradGuard no_grad;
    for (std::int64_t window = 0; window < windows; ++window) {
      const std::int64_t begin = 32 * window, size = std::min<std::int64_t>(32, count - begin);
      std::vector<std::int64_t> inputs, targets;
      for (std::int64_t at = begin; at < begin + size; ++at) {
        inputs.push_back(at == 0 ? t.end_of_document() : tokens[static_cast<std::size_t>(at - 1)]);
        targets.push_back(tokens[static_cast<std::size_t>(at)]);
      }
      const at::Tensor p = c.model->forward(at::tensor(inputs, at::kLong).unsqueeze(0))[0].log_softmax(-1);
      for (std::int64_t at = 0; at < size; ++at) nats -= p[at][targets[static_cast<std::size_t>(at)]].item<double>();
    }
    std::istringstream stream(text_);
    double words = static_cast<double>(std::count(text_.begin(), text_.end(), '\n'));
    for (std::string word; stream >> word;) words += 1;
    EXPECT_NEAR(e.nats, nats, 1e-5 * nats);
    EXPECT_NEAR(e.loss(), nats / static_cast<double>(count), 1e-5 * e.loss());
    EXPECT_NEAR(e.perplexity(), std::exp(nats / static_cast<double>(count)), 1e-4 * e.perplexity());
    EXPECT_NEAR(std::log(e.word_perplexity()), nats / words, 1e-5 * nats / words);
    EXPECT_NEAR(e.bits_per_byte(), nats / std::log(2) / static_cast<double>(text_.size()), 1e-5 * e.bits_per_byte());
    double sum = 0;
    std::uint64_t all = 0;
    for (const ContextRange& range : e.by_context) {
      sum += range.nats;
      all += range.tokens;
      EXPECT_LE(range.last, 31);
    }
    EXPECT_NEAR(sum, e.nats, 1e-9 * e.nats);
    EXPECT_EQ(all, tokens.size());
  }
}

TEST_F(LanguageEvaluationTest, CarriedStateEqualsOneLongWindow) {
  for (const char* attention : {"cosformer_plus", "cosformer", "softmax"}) {
    SCOPED_TRACE(attention);
    const Case c = make({std::string("model.attention=") + attention});
    LanguageEvaluationOptions whole, carried, windows;
    whole.rows = carried.rows = windows.rows = 1;
    whole.window = 64;
    carried.window = windows.window = 16;
    carried.carry = 64;
    const auto run = [&](const LanguageEvaluationOptions& o) {
      return evaluate_language(*c.model, c.data.corpus.test, c.data.corpus.tokenizer, o);
    };
    const LanguageEvaluation a = run(whole), b = run(carried), d = run(windows);
    EXPECT_FALSE(a.carried);
    EXPECT_TRUE(b.carried);
    EXPECT_NEAR(a.nats, b.nats, 1e-5 * a.nats);
    EXPECT_GT(std::abs(a.nats - d.nats), 1e-4 * a.nats) << "windows that see less must differ";
    ASSERT_EQ(a.by_context.size(), b.by_context.size());
    for (std::size_t at = 0; at < a.by_context.size(); ++at) {
      EXPECT_EQ(a.by_context[at].first, b.by_context[at].first);
      EXPECT_EQ(a.by_context[at].tokens, b.by_context[at].tokens);
      EXPECT_NEAR(a.by_context[at].nats, b.by_context[at].nats, 1e-5 * a.nats);
    }
  }
}

TEST_F(LanguageEvaluationTest, StopsWhenAsked) {
  const Case c = make({});
  LanguageEvaluationOptions options;
  options.rows = 1;
  options.window = 16;
  int asked = 0;
  options.stop = [&] { return ++asked == 3; };
  EXPECT_THROW(evaluate_language(*c.model, c.data.corpus.test, c.data.corpus.tokenizer, options), EvaluationStopped);
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(c.model->is_training()) << "as it was before";
  options.stop = {};
  options.carry = 1024;
  EXPECT_THROW(evaluate_language(*c.model, c.data.corpus.test, c.data.corpus.tokenizer, options), UserError);
}

}  // namespace
}  // namespace cosformer::train
