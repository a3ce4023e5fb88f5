// The attention's options: for each its key, its place in AttentionConfig, its limits, and who reads it; the table is
// in attention_options.cc.
//
// To add an option: a member of AttentionConfig and a row of that table; where a mechanism's default differs from the
// member's, a line in its preset (attention_traits.cc). Settings, errors, stored configs and labels follow.
#pragma once

#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "nn/mechanisms/attention_config.h"

namespace cosformer::nn {

struct AttentionOption {
  using Member = std::variant<bool AttentionConfig::*, std::int64_t AttentionConfig::*, double AttentionConfig::*,
                              std::string AttentionConfig::*>;
  std::string name;  // its key is "attention." + name
  Member member;
  std::string help;
  std::vector<std::string> readers;  // mechanisms; an option that the one in use does not read must be left alone
  double least = 0, most = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};

  std::string key() const { return "attention." + name; }
  bool is_read_by(const std::string& mechanism) const;
};

const std::vector<AttentionOption>& attention_options();

// Whether the mechanism reads the setting with this key ("attention.features").
bool reads_option(const std::string& mechanism, const std::string& key);

bool same_value(const AttentionOption& option, const AttentionConfig& a, const AttentionConfig& b);
std::string value_text(const AttentionOption& option, const AttentionConfig& config);

}  // namespace cosformer::nn
