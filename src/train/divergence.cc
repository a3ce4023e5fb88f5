#include "train/divergence.h"

#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "runs/checkpoint.h"

namespace cosformer::train {

void throw_diverged(const Diverged& d) {
  const std::vector<std::int64_t> kept = runs::checkpoint_steps(d.run);
  const double clip = d.config.clip;
  const std::string clipping =
      clip > 0 && clip <= 1 ? fmt::format("a smaller train.clip (now {})", significant(clip)) : "train.clip=1";
  throw Failure(fmt::format(
      "{} at step {}, on {}. {}Begin a new run (another --out: this one keeps its settings) with a smaller train.lr "
      "(now {}), a longer warm-up (train.warmup_steps), {}{}; and look at these places",
      d.what, d.step, d.places,
      kept.empty() ? "There is no checkpoint yet. " : fmt::format("The checkpoint of step {} is intact. ", kept.back()),
      significant(d.config.lr), clipping, d.bfloat16 ? ", or train.precision=fp32" : ""));
}

}  // namespace cosformer::train
