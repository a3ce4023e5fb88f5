#include "serve/session.h"

#include <cmath>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "byte_model.h"
#include "data/file_mutation.h"
#include "data/tokenizers/stream_decoder.h"

namespace cosformer::serve {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::mutated;
using cosformer::testing::read_bytes;
using cosformer::testing::replace_bytes;
using cosformer::testing::TemporaryDirectory;

bool same(const Session& a, const Session& b) {
  const nn::NamedTensors x = a.state.tensors(), y = b.state.tensors();
  bool equal = x.size() == y.size() && a.logits.equal(b.logits) && a.recent == b.recent && a.seed == b.seed &&
               a.state.clock.consumed() == b.state.clock.consumed();
  for (std::size_t at = 0; equal && at < x.size(); ++at) {
    equal = x[at].first == y[at].first && x[at].second.equal(y[at].second);
  }
  return equal;
}

class Sessions : public ::testing::TestWithParam<std::string> {
 protected:
  Session started() const {
    Session session = generator_.begin(11);
    generator_.read(session, generator_.tokenizer()->encode("A text that was read before."));
    return session;
  }

  Generator generator_ = byte_generator(GetParam());
  TemporaryDirectory folder_;
  std::string path_ = folder_.file("a.session");
};

TEST_P(Sessions, GoOnBitForBit) {
  Session session = started();
  const SamplingOptions sampling;
  for (int at = 0; at < 20; ++at) generator_.next(session, sampling);
  save_session(path_, session, generator_.owner());
  Session restored = load_session(path_, generator_.model(), generator_.owner());
  ASSERT_TRUE(same(session, restored));
  for (int at = 0; at < 60; ++at) ASSERT_EQ(generator_.next(session, sampling), generator_.next(restored, sampling));
  EXPECT_TRUE(same(session, restored));
  EXPECT_EQ(folder_.names(), std::set<std::string>{"a.session"});
}

TEST_P(Sessions, AreRefusedByOthers) {
  const Session session = started();
  const SessionOwner owner = generator_.owner();
  const auto complaint = [&](const SessionOwner& asking) {
    return message_of<UserError>([&] { load_session(path_, generator_.model(), asking); });
  };
  save_session(path_, session, owner);
  EXPECT_NE(complaint({"other", owner.tokenizer_hash}).find("another model"), std::string::npos);
  EXPECT_NE(complaint({owner.model_hash, "other"}).find("another tokenizer"), std::string::npos);
  save_session(path_, session, {"other", owner.tokenizer_hash});
  EXPECT_NE(complaint(owner).find("another model"), std::string::npos);
  EXPECT_NE(message_of<UserError>([&] { load_session(folder_.file("none"), generator_.model(), owner); }).find("none"),
            std::string::npos);
}

TEST_P(Sessions, OfAnotherVersionSayTheVersion) {
  save_session(path_, started(), generator_.owner());
  std::string bytes = read_bytes(path_);
  const std::string key = "\"cosformer.session\":\"";
  const std::size_t at = bytes.find(key);
  ASSERT_NE(at, std::string::npos);
  bytes[at + key.size()] = '7';
  replace_bytes(path_, bytes);
  EXPECT_NE(
      message_of<UserError>([&] { load_session(path_, generator_.model(), generator_.owner()); }).find("version '7'"),
      std::string::npos);
}

// What is not the session that was saved is refused, wherever the damage is.
TEST_P(Sessions, DamagedOnesAreAlwaysRefused) {
  const Session session = started();
  const SessionOwner owner = generator_.owner();
  save_session(path_, session, owner);
  const std::string whole = read_bytes(path_);
  std::mt19937 random(17);
  int refused = 0;
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    std::string damaged = whole;
    if (round % 2 == 0) {
      const std::size_t at = random() % (round % 4 == 0 ? std::min<std::size_t>(whole.size(), 1500) : whole.size());
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    } else {
      damaged = mutated(damaged, random);
    }
    replace_bytes(path_, damaged);
    try {
      // Spaces in the header may change and mean the same.
      EXPECT_TRUE(same(load_session(path_, generator_.model(), owner), session)) << round;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(path_), std::string::npos) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, kRounds * 9 / 10);
}

// Numbers that no program has written, under a checksum that is right.
TEST_P(Sessions, ImpossibleNumbersWithARightChecksumAreRefused) {
  const SessionOwner owner = generator_.owner();
  const auto complaint = [&](const std::function<void(Session&)>& change) {
    Session session = started();
    change(session);
    save_session(path_, session, owner);
    return message_of<UserError>([&] { load_session(path_, generator_.model(), owner); });
  };
  EXPECT_EQ(complaint([](Session&) {}), "(nothing was thrown)");
  for (const std::int32_t token : {-1, 1 << 30}) {
    EXPECT_NE(complaint([&](Session& s) { s.recent.back() = token; }).find("the tokens in 'recent'"),
              std::string::npos);
  }
  EXPECT_NE(complaint([](Session& s) { s.logits[3] = std::nan(""); }).find("'logits' are not numbers"),
            std::string::npos);
  const auto moved_to = [&](std::int64_t consumed) {
    return complaint([&](Session& s) { s.state.clock = nn::StreamClock(1, generator_.model().device(), consumed); });
  };
  for (const std::int64_t consumed : {std::int64_t{-1}, std::int64_t{1} << 62}) {
    EXPECT_NE(moved_to(consumed).find("it is damaged"), std::string::npos) << consumed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Sessions, ::testing::Values("cosformer", "cosformer_plus", "softmax", "hybrid"),
                         [](const auto& info) { return info.param; });

TEST(Generator, SaysTheHorizonBeforeItReads) {
  const Generator generator = byte_generator("cosformer_plus", 32);
  Session session = generator.begin(0);
  EXPECT_EQ(generator.room(session), 31);
  const std::vector<std::int32_t> tokens(32, 65);
  EXPECT_NE(message_of<UserError>([&] { generator.read(session, tokens); }).find("horizon is 32"), std::string::npos);
  EXPECT_EQ(session.consumed(), 1);
  for (int at = 0; at < 31; ++at) generator.next(session, {});
  EXPECT_EQ(generator.room(session), 0);
  EXPECT_NE(message_of<UserError>([&] { generator.next(session, {}); }).find("horizon is 32"), std::string::npos);
}

TEST(Generator, RefusesAnotherTokenizerAndMaskedModels) {
  models::LanguageModelConfig config = byte_model_config("cosformer_plus", 32);
  config.tokenizer = "another";
  EXPECT_THROW(Generator(models::seeded_model(config), data::byte_tokenizer()), UserError);
  config = byte_model_config("cosformer", 32);
  config.model.causal = false;
  EXPECT_THROW(Generator(models::seeded_model(config), data::byte_tokenizer()), UserError);
}

// Whatever bytes a model writes, what is shown is UTF-8, and all of it what the bytes say.
TEST(Generator, ItsTextIsNeverASplitCharacter) {
  const Generator generator = byte_generator("cosformer_plus", 600);
  Session session = generator.begin(5);
  data::StreamDecoder decoder(data::byte_tokenizer());
  std::string shown;
  std::vector<std::int32_t> tokens;
  for (int at = 0; at < 500; ++at) {
    tokens.push_back(generator.next(session, {}));
    const std::string piece = decoder.push(tokens.back());
    data::Utf8Filter check;
    EXPECT_EQ(check.push(piece), piece);
    EXPECT_TRUE(check.held_back().empty());
    shown += piece;
  }
  shown += decoder.finish();
  data::Utf8Filter at_once;
  std::string expected = at_once.push(data::byte_tokenizer()->decode(tokens));
  expected += at_once.finish();
  EXPECT_EQ(shown, expected);
}

}  // namespace
}  // namespace cosformer::serve
