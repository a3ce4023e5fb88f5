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
  s.add("train.init", c.init, "run of a language model (lm, mlm) that a text classifier's encoder begins as");
  s.add("train.seed", c.seed, "of weights, order and dropout");
  s.add("train.device", c.device, "auto takes a GPU where there is one", {"auto", "cpu", "cuda"});
  s.add("train.precision", c.precision, "auto: bf16 on a GPU, else fp32", {"auto", "fp32", "bf16"});
  s.add("train.steps", c.steps, "optimiser steps; 0: as many as the epochs need", 0, kMostSteps);
  s.add("train.epochs", c.epochs, "passes over the training data, where steps is 0", 0, kMostEpochs);
  s.add("train.batch_size", c.batch_size, "examples in a batch at most; 0: no limit", 0, kMostExamples);
  s.add("train.token_budget", c.token_budget, "tokens in a batch at most, padding included; 0: no limit", 0,
        kMostTokens);
  s.add("train.accumulate", c.accumulate, "batches whose gradients make one step", 1, 1 << 20);
  s.add("train.fixed_width", c.fixed_width, "pad every batch to the greatest length");
  s.add("train.width_multiple", c.width_multiple,
        "batches are padded to a multiple of it; on a GPU each width becomes a graph, so 128 suits long texts", 1,
        1 << 20);
  s.add("train.flip", c.flip, "images: mirror half of the training images");
  s.add("train.rotate", c.rotate, "square images: turn each training image by a random number of quarter turns");
  s.add("train.plain_epochs", c.plain_epochs,
        "epochs before train.flip and train.rotate begin: a hard task is begun faster on images that come again", 0);
  s.add("train.lr", c.lr, "peak learning rate", 0, kMostRate);
  s.add("train.final_lr", c.final_lr, "learning rate at the end of cosine and linear", 0, kMostRate);
  s.add("train.schedule", c.schedule, "how the learning rate goes on after the warm-up", schedule_names());
  s.add("train.warmup_steps", c.warmup_steps, "steps of linear warm-up; 0: warmup_fraction of all", 0, kMostSteps);
  s.add("train.warmup_fraction", c.warmup_fraction, "of all steps", 0, 1);
  s.add("train.weight_decay", c.weight_decay, "AdamW's, of matrices and embeddings", 0, kMostRate);
  s.add("train.beta1", c.beta1, "AdamW's", 0, 0.999999);
  s.add("train.beta2", c.beta2, "AdamW's", 0, 0.9999999);
  s.add("train.adam_eps", c.adam_eps, "AdamW's", 1e-30);
  s.add("train.clip", c.clip, "greatest norm of the gradient; 0: no limit");
  s.add("train.layer_decay", c.layer_decay, "classifiers: a layer's learning rate, relative to the layer above", 0.01,
        1);
  s.add("train.label_smoothing", c.label_smoothing, "share of the target spread over all classes", 0, 0.999);
  s.add("train.log_every", c.log_every, "steps between lines of metrics.jsonl", 1);
  s.add("train.eval_every", c.eval_every, "steps between evaluations; 0: after each epoch");
  s.add("train.eval_batch_size", c.eval_batch_size, "0: as in training", 0, kMostExamples);
  s.add("train.checkpoint_every", c.checkpoint_every, "steps between checkpoints; 0: with each evaluation");
  s.add("train.checkpoint_minutes", c.checkpoint_minutes,
        "minutes after which a checkpoint is written besides, so that no more is ever lost; 0: none by time");
  s.add("train.patience", c.patience, "evaluations without a better one before an early stop; 0: none");
  s.add("train.continued", c.continued,
        "times that cosformer train --continue has gone on with the run, which counts it", 0, 10000);
  s.add("train.graph", c.graph, "capture the step in a CUDA graph where shapes allow");
}

void require_possible(const TrainConfig& c) {
  if (c.steps == 0 && c.epochs <= 0) throw UserError("settings: set train.steps or train.epochs above 0");
  if (c.batch_size == 0 && c.token_budget == 0) {
    throw UserError("settings: set train.batch_size or train.token_budget above 0");
  }
  if (c.final_lr > c.lr) throw UserError("settings: train.final_lr must not exceed train.lr");
}

}  // namespace cosformer::runs
