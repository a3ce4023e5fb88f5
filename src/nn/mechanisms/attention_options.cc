#include "nn/mechanisms/attention_options.h"

#include <algorithm>
#include <sstream>

#include "nn/mechanisms/attention_traits.h"

namespace cosformer::nn {
namespace {

using C = AttentionConfig;

std::vector<std::string> all_but_the_paper() {
  std::vector<std::string> names = attention_names();
  std::erase(names, "cosformer");
  return names;
}

std::string variants_text() {
  std::string text = "The mechanism takes this one of its forms";
  for (const AttentionTraits& t : attention_traits()) {
    for (std::size_t at = 0; at < t.variants.size(); ++at) {
      text += (at == 0 ? "; " + t.name + ": " : ", ") + t.variants[at];
    }
  }
  return text + '.';
}

std::vector<std::string> with_variants() {
  std::vector<std::string> names;
  for (const AttentionTraits& t : attention_traits()) {
    if (!t.variants.empty()) names.push_back(t.name);
  }
  return names;
}

std::vector<AttentionOption> table() {
  const std::vector<std::string> ours{"cosformer", "cosformer_plus"};
  const std::vector<std::string> plus{"cosformer_plus"};
  return {
      {"horizon", &C::horizon,
       "Two tokens are at most this far apart, M, which sets the angle π/2M; 0: the model's greatest length.", ours},
      {"feature_map",
       &C::feature_map,
       "This function makes features of queries and keys; softmax: weights are exp(q·k/√d) instead, at quadratic cost.",
       {"cosformer", "cosformer_plus", "linear"},
       0,
       0,
       {"relu", "elu1", "leaky_relu", "silu", "identity", "softmax"}},
      {"reweight", &C::reweight,
       "Weights are multiplied by the cosine of the distance; false for plain linear attention.", ours},
      {"normalizer",
       &C::normalizer,
       "Each row is divided by the sum of its weights, or is not.",
       plus,
       0,
       0,
       {"sum", "none"}},
      {"eps",
       &C::eps,
       "Rows are divided by their sum of weights or, where that is smaller, by this number.",
       {"cosformer", "cosformer_plus", "linear", "performer", "rfa"},
       1e-30},
      {"decay",
       &C::decay,
       "Each head learns a factor by which weights fall with every token of distance.",
       {"cosformer_plus", "linear"}},
      {"decay_shortest",
       &C::decay_shortest,
       "The decay of the first head starts with a window of this many tokens; the others lie between it and "
       "decay_longest.",
       {"cosformer_plus", "linear"},
       0.1},
      {"decay_longest",
       &C::decay_longest,
       "The decay of the last head starts with a window of this many tokens.",
       {"cosformer_plus", "linear"},
       0.1},
      {"token_decay",
       &C::token_decay,
       "Each token of a causal model decides how much of what came before it is kept.",
       {"cosformer_plus", "linear"}},
      {"theta_spread", &C::theta_spread,
       "The heads have angles from small to large, so that weights turn negative; needs head_norm.", plus},
      {"theta_learned", &C::theta_learned, "Each head learns its angle.", plus},
      {"head_norm",
       &C::head_norm,
       "RMSNorm per head takes the place of the division by the row sum.",
       {"cosformer_plus", "linear"}},
      {"variant", &C::variant, variants_text(), with_variants()},
      {"features",
       &C::features,
       "Each head has this many random features: more estimate softmax better, and cost more.",
       {"performer", "rfa"},
       0,
       65536},
      {"redraw",
       &C::redraw,
       "Random features are drawn anew after this many forward passes in training; 0: never.",
       {"performer", "rfa"}},
      {"rank", &C::rank, "This many keys and values are left of a sequence.", {"linformer"}, 0, 65536},
      {"landmarks",
       &C::landmarks,
       "A sequence is cut into this many segments, whose means stand for it.",
       {"nystromformer"},
       0,
       65536},
      {"iterations",
       &C::iterations,
       "The pseudo-inverse (nystromformer) or the balancing of rows and columns (sinkhorn) takes this many iterations.",
       {"nystromformer", "sinkhorn"},
       0,
       1000},
      {"value_window",
       &C::value_window,
       "A convolution over this many values is added to the output; an odd number, 0: none.",
       {"nystromformer"},
       0,
       1025},
      {"block",
       &C::block,
       "A block of tokens that is handled together has this many.",
       {"local", "bigbird", "reformer", "sinkhorn"},
       1,
       65536},
      {"neighbours", &C::neighbours, "A block sees this many blocks on either side.", {"local"}, 0, 65536},
      {"window",
       &C::window,
       "A token sees this many tokens around it, half of them before it.",
       {"longformer"},
       2,
       1048576},
      {"global",
       &C::global,
       "This many first tokens see all others and are seen by all; bigbird rounds up to blocks.",
       {"longformer", "bigbird"},
       0,
       65536},
      {"random_blocks", &C::random_blocks, "A block sees this many random blocks.", {"bigbird"}, 0, 65536},
      {"stride",
       &C::stride,
       "The pattern repeats after this many tokens, l; 0: the root of the model's greatest length.",
       {"sparse"},
       0,
       1048576},
      {"summary",
       &C::summary,
       "In the fixed pattern this many tokens of a block are seen by others, c.",
       {"sparse"},
       1,
       65536},
      {"rounds",
       &C::rounds,
       "Tokens are hashed this many times: more find more similar keys, and cost more.",
       {"reformer"},
       1,
       64},
      {"buckets",
       &C::buckets,
       "A round of hashing has this many buckets; 0: two for each block of the greatest length.",
       {"reformer"},
       0,
       1048576},
      {"temperature",
       &C::temperature,
       "The soft sorting has this temperature: lower is nearer to a permutation.",
       {"sinkhorn"},
       1e-3,
       1e3},
      {"convolution", &C::convolution,
       "Queries, keys and values go through a depthwise convolution over this many tokens; 0: none.",
       all_but_the_paper(), 0, 64},
      {"gate", &C::gate, "The attention's output is multiplied by a sigmoid of its input.", all_but_the_paper()},
      {"dropout",
       &C::dropout,
       "This share of the attention's weights is zeroed while training.",
       {"softmax", "linformer", "synthesizer", "one_vs_each"},
       0,
       0.999},
  };
}

}  // namespace

const std::vector<AttentionOption>& attention_options() {
  static const std::vector<AttentionOption> all = table();
  return all;
}

bool AttentionOption::is_read_by(const std::string& mechanism) const {
  return std::find(readers.begin(), readers.end(), mechanism) != readers.end();
}

bool reads_option(const std::string& mechanism, const std::string& key) {
  const auto& all = attention_options();
  return std::any_of(all.begin(), all.end(),
                     [&](const AttentionOption& o) { return o.key() == key && o.is_read_by(mechanism); });
}

bool same_value(const AttentionOption& option, const AttentionConfig& a, const AttentionConfig& b) {
  return std::visit([&](auto member) { return a.*member == b.*member; }, option.member);
}

std::string value_text(const AttentionOption& option, const AttentionConfig& config) {
  std::ostringstream text;
  text << std::boolalpha;
  std::visit([&](auto member) { text << config.*member; }, option.member);
  return text.str();
}

}  // namespace cosformer::nn
