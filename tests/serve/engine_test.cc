// The engine beside a generator that does one text after the other.
#include "serve/engine/engine.h"

#include <future>
#include <random>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "byte_model.h"

namespace cosformer::serve {
namespace {

Generator generator_of(const std::string& attention, std::int64_t max_length = 4096) {
  models::LanguageModelConfig config = byte_model_config(attention, max_length);
  config.model.width = 32;
  config.model.heads = 2;
  config.model.feed_forward = 64;
  return {models::seeded_model(config), data::byte_tokenizer()};
}

struct Answer {
  std::vector<std::string> texts;
  std::vector<TextEnd> ended_by;
  Outcome outcome;
};

// What a request hears.
class Heard {
 public:
  explicit Heard(std::size_t choices = 1) {
    answer_.texts.resize(choices);
    answer_.ended_by.resize(choices);
  }
  Callbacks callbacks() {
    return {[this](std::size_t choice, std::string_view text, const TokenChance&) {
              answer_.texts[choice] += text;
              if (!first_told_) first_.set_value();
              first_told_ = true;
            },
            [this](std::size_t choice, std::string_view rest, TextEnd ended_by) {
              answer_.texts[choice] += rest;
              answer_.ended_by[choice] = ended_by;
            },
            [this](Outcome outcome) {
              answer_.outcome = std::move(outcome);
              end_.set_value();
            }};
  }
  const Answer& wait() {
    ended_.wait();
    return answer_;
  }
  void wait_for_text() { first_.get_future().wait(); }

 private:
  Answer answer_;
  bool first_told_ = false;
  std::promise<void> end_, first_;
  std::future<void> ended_ = end_.get_future();
};

struct Case {
  GenerationRequest request;
  std::string expected;
  TextEnd ended_by = TextEnd::kMaxTokens;
};

std::vector<std::int32_t> random_prompt(std::mt19937& random, std::size_t most) {
  std::vector<std::int32_t> prompt(random() % most);
  for (std::int32_t& token : prompt) token = static_cast<std::int32_t>(random() % 256);
  return prompt;
}

// With beginnings that are shared, so that the prefix cache has something to find.
std::vector<Case> random_cases(const Generator& generator, std::size_t count) {
  std::mt19937 random(5);
  std::vector<Case> cases(count);
  std::vector<std::vector<std::int32_t>> prompts;
  for (Case& each : cases) {
    GenerationRequest& r = each.request;
    r.prompt = random_prompt(random, random() % 4 == 0 ? 1500 : 60);
    if (!prompts.empty() && random() % 3 == 0) {
      r.prompt = prompts[random() % prompts.size()];
      const std::vector<std::int32_t> more = random_prompt(random, 40);
      r.prompt.insert(r.prompt.end(), more.begin(), more.end());
    }
    prompts.push_back(r.prompt);
    r.seed = random();
    r.writing.max_tokens = static_cast<std::int64_t>(random() % 40);
    r.writing.sampling.temperature = random() % 3 == 0 ? 0 : 0.7 + 0.1 * static_cast<double>(random() % 5);
    if (random() % 3 == 0) r.writing.sampling.top_k = 20;
    if (random() % 3 == 0) r.writing.sampling.top_p = 0.9;
    if (random() % 3 == 0) r.writing.sampling.repetition_penalty = 1.2;
    if (random() % 3 == 0) r.writing.stops = {std::string(1, static_cast<char>('a' + random() % 26)), "ab"};
    Session session = generator.begin(*r.seed);
    generator.read(session, r.prompt);
    const WrittenText written = write_text(generator, session, r.writing);
    each.expected = written.text;
    each.ended_by = written.ended_by;
  }
  return cases;
}

class EngineOf : public ::testing::TestWithParam<std::string> {};

TEST_P(EngineOf, GivesEachWhatItGetsAlone) {
  const Generator generator = generator_of(GetParam());
  const std::vector<Case> cases = random_cases(generator, 60);
  Engine engine(generator, {.rows = 9, .memory = 3 << 20, .snapshot_every = 512});
  EXPECT_EQ(engine.writes_together(), GetParam() != "softmax");
  std::vector<std::unique_ptr<Heard>> heard;
  for (const Case& each : cases) {
    heard.push_back(std::make_unique<Heard>());
    engine.submit(each.request, heard.back()->callbacks());
    if (heard.size() % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::size_t cached = 0;
  for (std::size_t at = 0; at < cases.size(); ++at) {
    const Answer& answer = heard[at]->wait();
    EXPECT_FALSE(answer.outcome.error.has_value());
    EXPECT_EQ(answer.texts[0], cases[at].expected) << "request " << at;
    EXPECT_EQ(answer.ended_by[0], cases[at].ended_by) << "request " << at;
    cached += answer.outcome.cached_tokens;
  }
  EXPECT_GT(cached, 0U);
  EXPECT_GT(engine.figures().cached_bytes, 0U);
  EXPECT_LE(engine.figures().cached_bytes, std::uint64_t{3} << 20);
}

TEST_P(EngineOf, GoesOnWithASession) {
  const Generator generator = generator_of(GetParam());
  const std::vector<std::int32_t> first = generator.tokenizer()->encode(std::string("Once upon")),
                                  second = generator.tokenizer()->encode(std::string(" a time"));
  Session alone = generator.begin(3);
  WritingOptions writing;
  writing.max_tokens = 20;
  writing.is_continued = true;
  generator.read(alone, first);
  const std::string text = write_text(generator, alone, writing).text;
  generator.read(alone, second);
  const std::string more = write_text(generator, alone, writing).text;

  Engine engine(generator, {.rows = 4});
  Heard a, b;
  engine.submit({.prompt = first, .seed = 3, .writing = writing, .keeps_session = true}, a.callbacks());
  const Session between = *a.wait().outcome.session;
  engine.submit({.prompt = second, .from = between, .writing = writing, .keeps_session = true}, b.callbacks());
  const Answer& answer = b.wait();
  EXPECT_EQ(a.wait().texts[0], text);
  EXPECT_EQ(answer.texts[0], more);
  EXPECT_EQ(answer.outcome.session->consumed(), alone.consumed());
  EXPECT_TRUE(at::equal(answer.outcome.session->logits, alone.logits));
}

INSTANTIATE_TEST_SUITE_P(All, EngineOf, ::testing::Values("cosformer", "cosformer_plus", "softmax"),
                         [](const auto& info) { return info.param; });

TEST(Engine, ChoicesAreSamplesWithSeedsInARow) {
  const Generator generator = generator_of("cosformer_plus");
  Engine engine(generator, {.rows = 4});
  WritingOptions writing;
  writing.max_tokens = 12;
  Heard heard(3);
  engine.submit({.prompt = {65, 66}, .seed = 8, .choices = 3, .writing = writing}, heard.callbacks());
  const Answer& answer = heard.wait();
  for (std::uint64_t at = 0; at < 3; ++at) {
    Session session = generator.begin(8 + at);
    generator.read(session, std::vector<std::int32_t>{65, 66});
    EXPECT_EQ(answer.texts[at], write_text(generator, session, writing).text);
  }
  EXPECT_EQ(answer.outcome.completion_tokens, 36U);
  EXPECT_NE(answer.texts[0], answer.texts[1]);
}

TEST(Engine, WhatIsCancelledEndsAndKeepsItsSession) {
  Engine engine(generator_of("cosformer_plus"), {.rows = 2});
  WritingOptions writing;
  writing.max_tokens = 1LL << 40;
  writing.past_end = true;
  Heard heard;
  const auto ticket =
      engine.submit({.prompt = {65}, .seed = 1, .writing = writing, .keeps_session = true}, heard.callbacks());
  heard.wait_for_text();
  ticket->cancel();
  const Answer& answer = heard.wait();
  EXPECT_TRUE(answer.outcome.cancelled);
  EXPECT_EQ(answer.outcome.session->consumed(), 2 + static_cast<std::int64_t>(answer.outcome.completion_tokens));
  engine.drain();
  EXPECT_EQ(engine.figures().writing, 0U);
}

TEST(Engine, RefusesWhatItCannotTake) {
  Engine engine(generator_of("cosformer", 64), {.rows = 1, .queue = 2});
  WritingOptions forever;
  forever.max_tokens = 60;
  const auto status = [&](GenerationRequest request) {
    try {
      engine.submit(std::move(request), {});
      return 0;
    } catch (const RequestError& error) {
      return error.status;
    }
  };
  EXPECT_EQ(status({.prompt = std::vector<std::int32_t>(64, 65)}), 400);
  EXPECT_EQ(status({.prompt = {65}, .choices = 2}), 400);
  int refused = 0;
  for (int at = 0; at < 50; ++at) refused += status({.prompt = {65}, .writing = forever}) == 429 ? 1 : 0;
  EXPECT_GT(refused, 0);
  engine.drain();
  EXPECT_EQ(status({.prompt = {65}}), 503);
}

TEST(Engine, ALongPromptLetsOthersWrite) {
  const Generator generator = generator_of("cosformer_plus", 1 << 20);
  Engine engine(generator, {.rows = 4});
  WritingOptions writing;
  writing.max_tokens = 20;
  Heard reader, writer;
  engine.submit({.prompt = std::vector<std::int32_t>(200'000, 65), .seed = 1}, reader.callbacks());
  engine.submit({.prompt = {66}, .seed = 1, .writing = writing}, writer.callbacks());
  writer.wait();
  EXPECT_EQ(engine.figures().reading, 1U) << "the long prompt came first and was not read yet";
  EXPECT_LT(engine.figures().prompt_tokens, 100'000U);
}

TEST(Engine, WhatIsUnderWayEndsWithIt) {
  Heard heard;
  WritingOptions writing;
  writing.max_tokens = 1LL << 40;
  writing.past_end = true;
  {
    Engine engine(generator_of("cosformer_plus"), {});
    engine.submit({.prompt = {65}, .seed = 1, .writing = writing}, heard.callbacks());
  }
  EXPECT_TRUE(heard.wait().outcome.cancelled);
}

TEST(Engine, EmbedsAsTheMeanOfWhatTheModelMakesOfEachToken) {
  const Generator generator = generator_of("cosformer_plus");
  Engine engine(generator, {});
  std::vector<std::int32_t> prompt(700, 65);
  prompt[3] = 66;
  Heard heard;
  engine.submit({.prompt = prompt, .embeds = true}, heard.callbacks());
  const std::vector<float>& embedding = heard.wait().outcome.embedding;
  std::vector<std::int64_t> all{data::byte_tokenizer()->end_of_document()};
  all.insert(all.end(), prompt.begin(), prompt.end());
  const at::NoGradGuard no_grad;
  auto model = models::seeded_model(generator.model().config());
  const at::Tensor hidden = model->hidden(at::tensor(all, at::kLong).unsqueeze(0))[0].slice(0, 1).mean(0);
  ASSERT_EQ(static_cast<std::int64_t>(embedding.size()), hidden.numel());
  for (std::int64_t at = 0; at < hidden.numel(); ++at) {
    EXPECT_NEAR(embedding[static_cast<std::size_t>(at)], hidden[at].item<float>(), 1e-4);
  }
}

}  // namespace
}  // namespace cosformer::serve
