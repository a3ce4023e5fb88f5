// Which mechanisms know the order of tokens by themselves, found by mixing the tokens up.
#include "nn/positions/token_order_note.h"

#include "mechanism_case.h"
#include "nn/multi_head_attention.h"

namespace cosformer::nn::testing {
namespace {

constexpr std::int64_t kTime = 96, kWidth = 16;

// How far a layer's output, of tokens in another order, is from the output in that order.
double change_by_order(const AttentionConfig& config) {
  at::manual_seed(1);
  MultiHeadConfig attention;
  attention.width = kWidth;
  attention.shape = {2, kWidth / 2, kTime, false, kWidth};
  MultiHeadAttention layer(attention, config);
  layer.eval();
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({1, kTime, kWidth});
  const at::Tensor order = at::randperm(kTime);
  const at::Tensor y = layer.forward(x, {});
  return difference(layer.forward(x.index_select(1, order), {}), y.index_select(1, order));
}

TEST(TokenOrderNote, BlindAreThoseWhoseOutputFollowsTheTokens) {
  for (const std::vector<std::string>& assignments :
       {std::vector<std::string>{"model.attention=softmax"},
        {"model.attention=softmax", "attention.convolution=4"},
        {"model.attention=linear"},
        {"model.attention=linear", "attention.decay=true"},
        {"model.attention=performer"},
        {"model.attention=rfa"},
        {"model.attention=one_vs_each"},
        {"model.attention=cosformer"},
        {"model.attention=cosformer", "attention.reweight=false"},
        {"model.attention=cosformer_plus"},
        {"model.attention=cosformer_plus", "attention.convolution=0", "attention.reweight=false"},
        {"model.attention=linformer", "attention.rank=8"},
        {"model.attention=nystromformer", "attention.landmarks=4"},
        {"model.attention=synthesizer"},
        {"model.attention=local", "attention.block=8"},
        {"model.attention=longformer", "attention.window=8"},
        {"model.attention=sparse"},
        {"model.attention=sinkhorn", "attention.block=8"}}) {
    const AttentionConfig config = config_of(assignments);
    const bool follows = change_by_order(config) < 1e-3;
    EXPECT_EQ(is_blind_to_order(config), follows) << label_of(config, false);
    EXPECT_EQ(note_on_order(config, "none", false).empty(), !follows);
    EXPECT_TRUE(note_on_order(config, "learned", false).empty());
  }
}

TEST(TokenOrderNote, SaysWhatToSet) {
  const std::string softmax = note_on_order(config_of({"model.attention=softmax"}, true), "none", true);
  EXPECT_NE(softmax.find("only which come before: the model will be poor. Set model.positions=rotary, or "
                         "attention.convolution=4"),
            std::string::npos)
      << softmax;
  const std::string linear = note_on_order(config_of({"model.attention=linear"}), "none", false);
  EXPECT_NE(linear.find("model.positions=learned"), std::string::npos) << linear;
}

}  // namespace
}  // namespace cosformer::nn::testing
