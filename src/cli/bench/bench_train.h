// `cosformer bench train`: whole training steps, alone or beside the same model written in torch.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/bench/train_bench.h"

namespace cosformer::cli {

void add_bench_train(CLI::App& app);

struct TrainPeersOptions {
  std::string python, scripts;
  int rounds = 3;
};

// Ours and the peers in turn, each in a process of its own, `rounds` times over; prints the table of ratios. `cases`
// are those of attention "cosformer" and "softmax". Returns every measurement as a line of JSON.
std::string bench_train_peers(const std::vector<TrainCase>& cases, const TrainEffort& effort,
                              const TrainPeersOptions& options);

}  // namespace cosformer::cli
