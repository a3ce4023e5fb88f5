#include "train/divergence.h"

#include <vector>

#include "base/error.h"
#include "base/table.h"
#include "runs/checkpoint.h"

namespace cosformer::train {

void throw_diverged(const Diverged& d) {
  const std::vector<std::int64_t> kept = runs::checkpoint_steps(d.run);
  const double clip = d.config.clip;
  const std::string clipping =
      clip > 0 && clip <= 1 ? "a smaller train.clip (now " + significant(clip) + ")" : "train.clip=1";
  throw Failure(d.what + " at step " + std::to_string(d.step) + ", on " + d.places + ". " +
                (kept.empty() ? "There is no checkpoint yet. "
                              : "The checkpoint of step " + std::to_string(kept.back()) + " is intact. ") +
                "Begin a new run (another --out: this one keeps its settings) with a smaller train.lr (now " +
                significant(d.config.lr) + "), a longer warm-up (train.warmup_steps), " + clipping +
                (d.bfloat16 ? ", or train.precision=fp32" : "") + "; and look at these places");
}

}  // namespace cosformer::train
