// Encoder-decoders: written token by token as recomputed, padding, masks, files, and what cannot be built.
#include "models/text_to_text/encoder_decoder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "cosformer/weights.h"
#include "models/language/lm_losses.h"
#include "models/text_to_text/greedy_writing.h"
#include "nn/mechanisms/attention_traits.h"

namespace cosformer::models {
namespace {

using cosformer::testing::message_of;
using cosformer::testing::TemporaryDirectory;

constexpr std::int64_t kVocabulary = 19, kEnd = 18;
constexpr double kTolerance = 1e-9;  // float64 against float64, in another order of operations

EncoderDecoderConfig tiny(const std::string& attention, const std::string& positions = "none",
                          const DecoderOptions& options = {}) {
  ModelConfig m;
  m.input.vocabulary = kVocabulary;
  m.input.max_length = 24;
  m.attention = nn::preset_of(attention, false);
  m.layers = 2;
  m.width = 24;
  m.heads = 3;
  m.feed_forward = 32;
  m.positions = positions;
  m.dropout = 0;
  return encoder_decoder_config(m, options, "");
}

// With weights large enough that tokens matter to each other, in float64: differences are those of the computation.
std::shared_ptr<EncoderDecoder> seeded(const EncoderDecoderConfig& config) {
  at::manual_seed(11);
  auto model = std::make_shared<EncoderDecoder>(config);
  at::NoGradGuard no_grad;
  for (const auto& item : model->named_parameters()) {
    if (item.key().find("embedding") != std::string::npos) item.value().normal_(0, 1);
  }
  model->to(at::kDouble);
  model->eval();
  return model;
}

at::Tensor tokens(std::int64_t rows, std::int64_t time) {
  return at::randint(kEnd, {rows, time}, at::kLong);
}

double greatest(const at::Tensor& x) {
  return x.abs().max().item<double>();
}

struct Variant {
  std::string attention, positions;
};
class Writing : public ::testing::TestWithParam<Variant> {};

TEST_P(Writing, TokenByTokenEqualsRecomputing) {
  DecoderOptions options;
  options.decay = GetParam().attention == "cosformer_plus";
  const auto model = seeded(tiny(GetParam().attention, GetParam().positions, options));
  const at::NoGradGuard no_grad;
  const at::Tensor source = tokens(3, 9), target = tokens(3, 14);
  const at::Tensor mask = at::arange(9).unsqueeze(0).lt(at::tensor({9, 4, 1}).unsqueeze(1));
  const EncodedSource encoded = model->encode(source, mask);
  const at::Tensor whole = model->hidden(target, {}, encoded);
  WritingState state = model->begin_writing(encoded);
  for (std::int64_t at = 0; at < 14; ++at) {
    const at::Tensor next = model->write_hidden(target.narrow(1, at, 1), state);
    EXPECT_LT(greatest(next - whole.narrow(1, at, 1)), kTolerance * greatest(whole)) << "token " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(EncoderDecoder, Writing,
                         ::testing::Values(Variant{"cosformer", "none"}, Variant{"cosformer", "learned"},
                                           Variant{"cosformer_plus", "none"}, Variant{"cosformer_plus", "sinusoidal"},
                                           Variant{"linear", "learned"}, Variant{"softmax", "rotary"},
                                           Variant{"softmax", "learned"}, Variant{"performer", "learned"}),
                         [](const auto& info) { return info.param.attention + "_" + info.param.positions; });

TEST(EncoderDecoder, PaddingChangesNothing) {
  for (const char* attention :
       {"cosformer", "cosformer_plus", "linear", "softmax", "performer", "rfa", "one_vs_each"}) {
    const auto model = seeded(tiny(attention, "learned"));
    const at::NoGradGuard no_grad;
    const at::Tensor source = tokens(1, 6), inputs = tokens(1, 5), targets = tokens(1, 5);
    const at::Tensor alone = model->losses(model->hidden(inputs, {}, model->encode(source, {})), targets);
    const at::Tensor source_mask = at::arange(10).unsqueeze(0).lt(6), mask = at::arange(8).unsqueeze(0).lt(5);
    const at::Tensor padded =
        model->losses(model->hidden(at::cat({inputs, tokens(1, 3)}, 1), mask,
                                    model->encode(at::cat({source, tokens(1, 4)}, 1), source_mask)),
                      at::cat({targets, at::full({1, 3}, kNoTarget, at::kLong)}, 1));
    EXPECT_LT(greatest(padded.narrow(1, 0, 5) - alone), kTolerance * greatest(alone)) << attention;
    EXPECT_EQ(greatest(padded.narrow(1, 5, 3)), 0) << attention;
  }
}

TEST(EncoderDecoder, SeesTheWholeSourceAndNothingThatIsNotWritten) {
  const auto model = seeded(tiny("cosformer_plus"));
  const at::NoGradGuard no_grad;
  const at::Tensor source = tokens(1, 8), target = tokens(1, 10);
  const at::Tensor before = model->hidden(target, {}, model->encode(source, {}));
  at::Tensor other = target.clone();
  other.select(1, 6).fill_((target[0][6].item<std::int64_t>() + 1) % kEnd);
  const at::Tensor after = model->hidden(other, {}, model->encode(source, {}));
  EXPECT_LT(greatest((after - before).narrow(1, 0, 6)), 1e-12);
  EXPECT_GT(greatest((after - before).narrow(1, 6, 4)), 1e-6);
  at::Tensor changed = source.clone();
  changed.select(1, 7).fill_((source[0][7].item<std::int64_t>() + 1) % kEnd);
  const at::Tensor informed = model->hidden(target, {}, model->encode(changed, {}));
  EXPECT_GT(greatest((informed - before).select(1, 0)), 1e-6);
}

TEST(EncoderDecoder, EveryWeightLearns) {
  DecoderOptions options;
  options.decay = true;
  auto model = seeded(tiny("cosformer_plus", "learned", options));
  model->to(at::kFloat);
  const at::Tensor hidden = model->hidden(tokens(2, 7), {}, model->encode(tokens(2, 9), {}));
  model->losses(hidden, tokens(2, 7)).mean().backward();
  for (const auto& item : model->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<float>(), 0) << item.key();
  }
}

// With a state (cosformer) and without one (rfa), beside the loop that defines it, a row at a time.
TEST(GreedyWriting, TakesTheLikeliestTokenUntilTheEnd) {
  for (const char* attention : {"cosformer", "softmax", "rfa"}) {
    const auto model = seeded(tiny(attention, "learned"));
    const at::NoGradGuard no_grad;
    const at::Tensor source = tokens(6, 5), mask = at::arange(5).unsqueeze(0).lt(at::randint(1, 6, {6, 1}, at::kLong));
    const auto answers = write_greedily(*model, source, mask, {kEnd, 0});
    for (std::int64_t row = 0; row < 6; ++row) {
      const std::int64_t length = mask[row].sum().item<std::int64_t>();
      const EncodedSource encoded = model->encode(source[row].narrow(0, 0, length).unsqueeze(0), {});
      std::vector<std::int64_t> written{kEnd};
      while (written.size() < 24) {
        const at::Tensor inputs = at::tensor(written).unsqueeze(0);
        const at::Tensor last = model->hidden(inputs, {}, encoded).select(1, inputs.size(1) - 1);
        written.push_back(model->logits(last).argmax().item<std::int64_t>());
        if (written.back() == kEnd) break;
      }
      const std::vector<std::int32_t>& answer = answers[static_cast<std::size_t>(row)];
      std::vector<std::int32_t> expected(written.begin() + 1, written.end());
      if (!expected.empty() && expected.back() == kEnd) expected.pop_back();
      EXPECT_EQ(answer, expected) << attention << ", row " << row;
    }
    EXPECT_LE(write_greedily(*model, source, mask, {kEnd, 3})[0].size(), 3U);
  }
}

TEST(EncoderDecoder, AFileGivesTheSameModel) {
  const TemporaryDirectory folder;
  DecoderOptions options;
  options.attention = "softmax";
  options.cross_attention = "linear";
  options.layers = 1;
  EncoderDecoderConfig config = tiny("linformer", "learned", options);
  config.tokenizer = "abc";
  const auto model = seeded(config);
  model->to(at::kFloat);
  const std::string path = folder.file("model.safetensors");
  save_weights(path, *model, to_metadata(config));
  ASSERT_TRUE(is_encoder_decoder(path));
  const auto loaded = load_encoder_decoder(path);
  EXPECT_EQ(to_metadata(loaded->config()), to_metadata(config));
  EXPECT_EQ(loaded->config().tokenizer, "abc");
  const at::NoGradGuard no_grad;
  const at::Tensor source = tokens(2, 5), target = tokens(2, 4);
  EXPECT_TRUE(at::equal(loaded->hidden(target, {}, loaded->encode(source, {})),
                        model->hidden(target, {}, model->encode(source, {}))));
}

TEST(EncoderDecoder, SaysWhatCannotBeBuilt) {
  const auto refusal = [](const EncoderDecoderConfig& config) {
    return message_of<UserError>([&] { EncoderDecoder model(config); });
  };
  EXPECT_NE(refusal(tiny("linformer", "learned")).find("text_to_text.decoder_attention"), std::string::npos);
  DecoderOptions options;
  options.attention = "softmax";
  EXPECT_NE(refusal(tiny("linformer", "learned", options)).find("those that can: cosformer"), std::string::npos);
  EXPECT_NE(refusal(tiny("cosformer", "grid")).find("not for text_to_text"), std::string::npos);
  EXPECT_NE(refusal(tiny("cosformer", "rotary")).find("the encoder's attention"), std::string::npos);
  const auto model = seeded(tiny("cosformer"));
  EXPECT_NE(message_of<UserError>([&] { model->encode(tokens(1, 25), {}); }).find("longer than the model's 23"),
            std::string::npos);
  WritingState state = model->begin_writing(model->encode(tokens(1, 3), {}));
  model->write_hidden(tokens(1, 24), state);
  EXPECT_NE(message_of<UserError>([&] { model->write_hidden(tokens(1, 1), state); }).find("longer than"),
            std::string::npos);
}

TEST(DecoderOptions, DecayFollowsTheCausalPresetUnlessSomebodySaysOtherwise) {
  const auto decay_of = [](const std::vector<std::string>& assignments) {
    ModelConfig model;
    DecoderOptions options;
    Settings settings;
    add_settings(settings, model, false);
    add_settings(settings, options);
    for (const std::string& assignment : assignments) settings.assign(assignment);
    apply_preset(model, settings);
    apply_preset(options, model, settings);
    model.input.vocabulary = kVocabulary;
    model.input.max_length = 24;
    const EncoderDecoderConfig config = encoder_decoder_config(model, options, "");
    EXPECT_FALSE(config.cross.decay);
    EXPECT_EQ(config.cross.convolution, 0);
    return std::pair(config.model.attention.decay, config.decoder.decay);
  };
  EXPECT_EQ(decay_of({}), std::pair(false, true));
  EXPECT_EQ(decay_of({"attention.decay=false"}), std::pair(false, false));
  EXPECT_EQ(decay_of({"attention.decay=true"}), std::pair(true, true));
  EXPECT_EQ(decay_of({"text_to_text.decoder_decay=false"}), std::pair(false, false));
  EXPECT_EQ(decay_of({"model.attention=softmax"}), std::pair(false, false));
  EXPECT_EQ(decay_of({"model.attention=softmax", "text_to_text.decoder_attention=cosformer_plus"}),
            std::pair(false, true));
}

}  // namespace
}  // namespace cosformer::models
