// The tables behind attention settings: what is read, refused and shown.
#include "nn/mechanisms/attention_config.h"

#include <algorithm>

#include "base/error.h"
#include "mechanism_case.h"
#include "nn/mechanisms/attention_options.h"
#include "nn/mechanisms/attention_traits.h"
#include "nn/multi_head_attention.h"

namespace cosformer::nn::testing {
namespace {

std::string refusal(const std::vector<std::string>& assignments, bool causal = false) {
  try {
    require_possible(config_of(assignments, causal), causal);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(AttentionConfig, EveryMechanismStandsByItself) {
  for (const std::string& name : attention_names()) {
    for (const bool causal : {false, true}) {
      const std::string reason = refusal({"model.attention=" + name}, causal);
      EXPECT_EQ(reason.empty(), !causal || traits_of(name).no_causal.empty()) << name << ": " << reason;
      EXPECT_EQ(label_of(config_of({"model.attention=" + name}, causal), causal), name);
    }
  }
}

TEST(AttentionConfig, ReadersOfOptionsExist) {
  const std::vector<std::string> names = attention_names();
  for (const AttentionOption& option : attention_options()) {
    EXPECT_FALSE(option.readers.empty()) << option.name;
    for (const std::string& reader : option.readers) {
      EXPECT_NE(std::find(names.begin(), names.end(), reader), names.end()) << option.name << ": " << reader;
    }
  }
  EXPECT_TRUE(reads_option("performer", "attention.features"));
  EXPECT_FALSE(reads_option("softmax", "attention.features"));
}

// For every mechanism and every option that it does not read: another value is refused, and the message names both.
TEST(AttentionConfig, AnOptionThatIsNotReadIsRefused) {
  for (const std::string& name : attention_names()) {
    for (const AttentionOption& option : attention_options()) {
      if (option.is_read_by(name)) continue;
      AttentionConfig config = config_of({"model.attention=" + name});
      struct Changer {
        AttentionConfig& c;
        const AttentionOption& o;
        void operator()(bool AttentionConfig::*m) const { c.*m = !(c.*m); }
        void operator()(std::int64_t AttentionConfig::*m) const { c.*m += 1; }
        void operator()(double AttentionConfig::*m) const { c.*m = c.*m / 2 + 0.1; }
        void operator()(std::string AttentionConfig::*m) const {
          c.*m = o.choices.empty() ? "other" : c.*m == o.choices[1] ? o.choices[0] : o.choices[1];
        }
      };
      std::visit(Changer{config, option}, option.member);
      try {
        require_possible(config, false);
        ADD_FAILURE() << name << " took " << option.key();
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find(option.key()), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find('"' + name + '"'), std::string::npos) << error.what();
      }
    }
  }
}

TEST(AttentionConfig, MessagesSayWhy) {
  EXPECT_NE(refusal({"model.attention=softmax", "attention.features=9"}).find("performer, rfa"), std::string::npos);
  EXPECT_NE(refusal({"model.attention=linformer"}, true).find("cannot be causal"), std::string::npos);
  EXPECT_NE(refusal({"model.attention=rfa", "attention.variant=dense"}).find("gaussian, arc_cosine"),
            std::string::npos);
  EXPECT_NE(refusal({"model.attention=performer", "attention.features=0"}).find("at least 1"), std::string::npos);
  EXPECT_EQ(label_of(config_of({"model.attention=rfa", "attention.variant=arc_cosine", "attention.features=8"}), false),
            "rfa (variant=arc_cosine, features=8)");
  EXPECT_EQ(label_of(config_of({"model.attention=cosformer", "attention.feature_map=identity"}), false),
            "cosformer (feature_map=identity)");
}

TEST(AttentionConfig, RotaryPositionsGoWithFunctionsOfProducts) {
  for (const std::string& name : attention_names()) {
    MultiHeadConfig block{8, {2, 4, 20, false}, true, true};
    const AttentionConfig config = config_of({"model.attention=" + name});
    if (traits_of(name).no_rotary.empty()) {
      EXPECT_EQ(MultiHeadAttention(block, config).forward(at::randn({1, 20, 8}), {}).size(1), 20) << name;
    } else {
      EXPECT_THROW(MultiHeadAttention(block, config), UserError) << name;
    }
  }
  for (const char* name : {"softmax", "performer", "rfa", "nystromformer", "one_vs_each"}) {
    EXPECT_TRUE(traits_of(name).no_rotary.empty()) << name;
  }
}

}  // namespace
}  // namespace cosformer::nn::testing
