// Weights to a file and back, and files that do not fit.
#include "cosformer/weights.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/error.h"
#include "base/formats/safetensors.h"
#include "cosformer/nn.h"

namespace cosformer {
namespace {

class Weights : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("cosformer_weights_" + std::to_string(::getpid()) +
                                                       testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder);
    path = (folder / "weights.safetensors").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  static nn::CosformerAttention module(std::int64_t width, bool out = true) {
    return nn::CosformerAttention(
        nn::CosformerAttentionOptions{.embed_dim = width, .num_heads = 2, .out_projection = out});
  }

  std::string complaint(torch::nn::Module& m) const {
    try {
      load_weights(path, m);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder;
  std::string path;
};

TEST_F(Weights, RoundTripGivesTheSameBits) {
  auto saved = module(8), loaded = module(8);
  save_weights(path, *saved, {{"format", "pt"}});
  load_weights(path, *loaded);
  const auto a = saved->named_parameters(), b = loaded->named_parameters();
  for (const auto& item : a) EXPECT_TRUE(at::equal(item.value(), b[item.key()])) << item.key();
  EXPECT_EQ(safetensors::Reader(path).metadata().at("format"), "pt");
  const auto x = at::randn({1, 4, 8});
  EXPECT_TRUE(at::equal(saved->forward(x), loaded->forward(x)));
}

TEST_F(Weights, NumbersAreConvertedToTheModulesDtype) {
  auto saved = module(8), loaded = module(8);
  loaded->to(at::kBFloat16);
  save_weights(path, *saved);
  load_weights(path, *loaded);
  EXPECT_TRUE(at::equal(loaded->q_proj->weight, saved->q_proj->weight.to(at::kBFloat16)));
}

TEST_F(Weights, EveryMisfitIsListedAndNothingChanges) {
  auto saved = module(8), other = module(6, false);
  save_weights(path, *saved);
  const auto before = other->q_proj->weight.clone();
  const std::string text = complaint(*other);
  EXPECT_NE(text.find("shape of q_proj.weight: expected [6, 6], the file has [8, 8]"), std::string::npos) << text;
  EXPECT_NE(text.find("not expected: out_proj.bias"), std::string::npos) << text;
  EXPECT_TRUE(at::equal(before, other->q_proj->weight));
  auto without = module(8, false), with = module(8);
  save_weights(path, *without);
  EXPECT_NE(complaint(*with).find("missing: out_proj.weight [8, 8]"), std::string::npos);
}

}  // namespace
}  // namespace cosformer
