#include "cli/train/floor_advice.h"

#include <fmt/core.h>

#include "base/table.h"

namespace cosformer::cli {
namespace {

// Of the loss of guessing: above it nothing was learned to speak of.
constexpr double kHardlyLearned = 0.97;
// Of the validation loss: below it training examples were learned by heart.
constexpr double kLearnedByHeart = 0.75;

}  // namespace

std::string floor_advice(const std::string& reached, const std::string& rule, const std::string& floor,
                         const TrainingSeen& seen) {
  std::string text = fmt::format(
      "the model ({}) is not better than a rule that understands nothing ({}, {}). Worth trying, in a new run (another "
      "--out):\n",
      reached, rule, floor);
  const auto add = [&](const std::string& line) { text += fmt::format("  - {}\n", line); };
  const std::string steps = fmt::format("more steps (--steps, now {}; or train.epochs)", with_commas(seen.steps));
  const bool hardly =
      seen.train_loss && seen.guessing_loss > 0 && *seen.train_loss > kHardlyLearned * seen.guessing_loss;
  const bool by_heart = seen.train_loss && seen.valid_loss && *seen.train_loss < kLearnedByHeart * *seen.valid_loss;
  if (seen.steps > 0 && seen.best_step == seen.steps) {
    add(steps + ": it did best at its last evaluation, so it was still getting better");
  } else if (seen.steps > 0 && !by_heart) {
    add(steps);
  }
  if (hardly) {
    add(
        fmt::format("another train.lr (now {}): its training loss of {} has hardly left that of guessing, {}; try "
                    "three times more and ten times less, with a longer warm-up (train.warmup_steps)",
                    significant(seen.lr), significant(*seen.train_loss), significant(seen.guessing_loss)));
  }
  if (by_heart) {
    add(
        fmt::format("more data, more model.dropout or a smaller model (model.width, model.layers): it has learned its "
                    "training examples by heart (loss {}, on others {})",
                    significant(*seen.train_loss), significant(*seen.valid_loss)));
  }
  if (seen.reads_text && !seen.has_initial_weights) {
    add("to begin as a language model of similar texts: cosformer train --task lm --data TEXT --out LM, then "
        "--set train.init=LM");
  }
  if (seen.is_plain) add("--attention cosformer_plus, which sees neighbours and order better");
  return text;
}

}  // namespace cosformer::cli
