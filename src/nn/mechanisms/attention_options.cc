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
  std::string text = "which of a mechanism's forms";
  for (const AttentionTraits& t : attention_traits()) {
    for (std::size_t at = 0; at < t.variants.size(); ++at) {
      text += (at == 0 ? "; " + t.name + ": " : ", ") + t.variants[at];
    }
  }
  return text;
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
      {"horizon", &C::horizon, "M, the greatest distance between tokens; 0: the model's greatest length", ours},
      {"feature_map",
       &C::feature_map,
       "what is applied to queries and keys; softmax: exp(q·k/√d) instead, at quadratic cost",
       {"cosformer", "cosformer_plus", "linear"},
       0,
       0,
       {"relu", "elu1", "leaky_relu", "silu", "identity", "softmax"}},
      {"reweight", &C::reweight, "weigh by the cosine of the distance", ours},
      {"normalizer", &C::normalizer, "divide by the sum of the weights, or do not", plus, 0, 0, {"sum", "none"}},
      {"eps",
       &C::eps,
       "lower bound of the divisor",
       {"cosformer", "cosformer_plus", "linear", "performer", "rfa"},
       1e-30},
      {"decay", &C::decay, "a learned decay per head", {"cosformer_plus", "linear"}},
      {"decay_shortest",
       &C::decay_shortest,
       "the shortest window that a head starts with, in tokens",
       {"cosformer_plus", "linear"},
       0.1},
      {"decay_longest", &C::decay_longest, "the longest", {"cosformer_plus", "linear"}, 0.1},
      {"token_decay",
       &C::token_decay,
       "each token decides how much of what came before it is kept; causal models",
       {"cosformer_plus", "linear"}},
      {"theta_spread", &C::theta_spread, "angles spread over the heads; needs head_norm", plus},
      {"theta_learned", &C::theta_learned, "a trained angle per head", plus},
      {"head_norm",
       &C::head_norm,
       "RMSNorm per head in place of the division by the row sum",
       {"cosformer_plus", "linear"}},
      {"variant", &C::variant, variants_text(), with_variants()},
      {"features", &C::features, "random features of a head", {"performer", "rfa"}, 0, 65536},
      {"redraw",
       &C::redraw,
       "draw random features anew after so many training forwards; 0: never",
       {"performer", "rfa"}},
      {"rank", &C::rank, "keys and values that are left of a sequence", {"linformer"}, 0, 65536},
      {"landmarks", &C::landmarks, "segments of a sequence", {"nystromformer"}, 0, 65536},
      {"iterations",
       &C::iterations,
       "of the pseudo-inverse, or of the balancing",
       {"nystromformer", "sinkhorn"},
       0,
       1000},
      {"value_window",
       &C::value_window,
       "width of a convolution over the values that is added to the output; 0: none",
       {"nystromformer"},
       0,
       1025},
      {"block", &C::block, "tokens that are handled together", {"local", "bigbird", "reformer", "sinkhorn"}, 1, 65536},
      {"neighbours", &C::neighbours, "blocks that a block sees on either side", {"local"}, 0, 65536},
      {"window", &C::window, "tokens around a token that it sees, half of them before it", {"longformer"}, 2, 1048576},
      {"global",
       &C::global,
       "first tokens, which see all and are seen by all; bigbird rounds up to blocks",
       {"longformer", "bigbird"},
       0,
       65536},
      {"random_blocks", &C::random_blocks, "random blocks that a block sees", {"bigbird"}, 0, 65536},
      {"stride", &C::stride, "l of the pattern; 0: the root of the model's greatest length", {"sparse"}, 0, 1048576},
      {"summary", &C::summary, "c, the tokens of a block that others see in the fixed pattern", {"sparse"}, 1, 65536},
      {"rounds", &C::rounds, "rounds of hashing", {"reformer"}, 1, 64},
      {"buckets", &C::buckets, "of a round; 0: two for each block of the greatest length", {"reformer"}, 0, 1048576},
      {"temperature", &C::temperature, "of the soft sorting; lower is harder", {"sinkhorn"}, 1e-3, 1e3},
      {"convolution", &C::convolution, "width of a depthwise convolution on q, k and v; 0: none", all_but_the_paper(),
       0, 64},
      {"gate", &C::gate, "an output gate", all_but_the_paper()},
      {"dropout",
       &C::dropout,
       "dropout of the weights, where they are formed",
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
