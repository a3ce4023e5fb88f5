#include "runs/train_config.h"

#include "base/error.h"

namespace cosformer::runs {
namespace {

// Far beyond any training, and so low that no sum or product of them overflows.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 40, kMostExamples = 1 << 24, kMostTokens = std::int64_t{1} << 40;
constexpr double kMostEpochs = 1e9, kMostRate = 1e38;

}  // namespace

std::vector<std::string> schedule_names() {
  return {"cosine", "linear", "constant", "rsqrt"};
}

void add_settings(Settings& s, TrainConfig& c) {
  s.add("train.init", c.init,
        "A text classifier's encoder starts from the weights of this run (or bundle) of a language model, lm or mlm; "
        "empty: from random weights.");
  s.add("train.seed", c.seed,
        "The initial weights, the order of the examples and dropout follow from this number: another one gives another "
        "training.");
  s.add("train.device", c.device, "The model is trained on this device; auto takes a GPU where there is one.",
        {"auto", "cpu", "cuda"});
  s.add("train.precision", c.precision,
        "Matrix products and attention are computed in this number format, bf16 through autocast; auto takes bf16 on a "
        "GPU, else fp32.",
        {"auto", "fp32", "bf16"});
  s.add("train.steps", c.steps, "The training takes this many optimiser steps in all; 0: as many as train.epochs need.",
        0, kMostSteps);
  s.add("train.epochs", c.epochs,
        "The training data are read this many times, where train.steps is 0; fractions are allowed.", 0, kMostEpochs);
  s.add("train.batch_size", c.batch_size,
        "A batch has at most this many examples; 0: only train.token_budget limits it. Fewer need less memory.", 0,
        kMostExamples);
  s.add("train.token_budget", c.token_budget,
        "A batch has at most this many tokens, padding included; 0: only train.batch_size limits it. Useful where "
        "lengths differ.",
        0, kMostTokens);
  s.add("train.accumulate", c.accumulate,
        "The gradients of this many batches are averaged for one step: larger batches than memory holds.", 1, 1 << 20);
  s.add(
      "train.fixed_width", c.fixed_width,
      "Every batch is padded to the greatest length, so that all have one shape; slower, but even in time and memory.");
  s.add("train.width_multiple", c.width_multiple,
        "The length of a batch is padded to a multiple of this many tokens; on a GPU each length becomes a graph, so "
        "128 suits long texts.",
        1, 1 << 20);
  s.add("train.flip", c.flip, "Half of the training images, drawn anew each time, are mirrored left to right.");
  s.add("train.rotate", c.rotate,
        "Each training image, which must be square, is turned by a random number of quarter turns.");
  s.add("train.plain_epochs", c.plain_epochs,
        "For this many epochs images are neither mirrored nor turned: a hard task is begun faster on images that come "
        "again.",
        0);
  s.add("train.lr", c.lr,
        "The learning rate rises to this value in the warm-up; smaller where the loss becomes unstable.", 0, kMostRate);
  s.add("train.final_lr", c.final_lr,
        "The learning rate falls to this value at the end, with the schedules cosine and linear.", 0, kMostRate);
  s.add("train.schedule", c.schedule,
        "After the warm-up the learning rate falls as a cosine, linearly or by the inverse root of the step, or stays.",
        schedule_names());
  s.add("train.warmup_steps", c.warmup_steps,
        "The learning rate rises linearly for this many steps; 0: for train.warmup_fraction of all.", 0, kMostSteps);
  s.add("train.warmup_fraction", c.warmup_fraction,
        "The learning rate rises linearly for this share of all steps, where train.warmup_steps is 0.", 0, 1);
  s.add(
      "train.weight_decay", c.weight_decay,
      "AdamW shrinks matrices and embeddings by this times the learning rate in each step; higher against overfitting.",
      0, kMostRate);
  s.add("train.beta1", c.beta1, "AdamW keeps this share of its running mean of gradients in each step.", 0, 0.999999);
  s.add("train.beta2", c.beta2, "AdamW keeps this share of its running mean of squared gradients in each step.", 0,
        0.9999999);
  s.add("train.adam_eps", c.adam_eps, "AdamW adds this to the root of the mean square that it divides by.", 1e-30);
  s.add("train.clip", c.clip, "A gradient with a larger norm than this is scaled down to it; 0: no limit.");
  s.add("train.layer_decay", c.layer_decay,
        "Each layer of a classifier learns at this share of the rate of the layer above it; below 1 when fine-tuning "
        "with train.init.",
        0.01, 1);
  s.add("train.label_smoothing", c.label_smoothing,
        "This share of the target is spread evenly over all classes, so that the model does not become too sure.", 0,
        0.999);
  s.add("train.log_every", c.log_every, "A line is written to metrics.jsonl every this many steps.", 1);
  s.add("train.eval_every", c.eval_every,
        "The model is evaluated on the validation part every this many steps; 0: after each epoch.");
  s.add("train.eval_batch_size", c.eval_batch_size,
        "An evaluation reads batches of at most this many examples; 0: batches as in training.", 0, kMostExamples);
  s.add("train.checkpoint_every", c.checkpoint_every,
        "A checkpoint is written every this many steps; 0: with each evaluation.");
  s.add("train.checkpoint_minutes", c.checkpoint_minutes,
        "A checkpoint is also written when this many minutes have passed since the last, so that no more is ever lost; "
        "0: none by time.");
  s.add("train.patience", c.patience,
        "The training stops early after this many evaluations without a better one; 0: never.");
  s.add("train.continued", c.continued,
        "The program counts here how often cosformer train --continue has gone on with the run.", 0, 10000);
  s.add("train.graph", c.graph,
        "On a GPU a training step is captured as a CUDA graph where shapes allow, which saves launches; false when "
        "debugging.");
}

void require_possible(const TrainConfig& c) {
  if (c.steps == 0 && c.epochs <= 0) throw UserError("settings: set train.steps or train.epochs above 0");
  if (c.batch_size == 0 && c.token_budget == 0) {
    throw UserError("settings: set train.batch_size or train.token_budget above 0");
  }
  if (c.final_lr > c.lr) throw UserError("settings: train.final_lr must not exceed train.lr");
}

}  // namespace cosformer::runs
