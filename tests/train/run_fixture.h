// What the tests of whole trainings share.
#pragma once

#include <csignal>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file_fixture.h"
#include "train/trainer.h"

namespace cosformer::train {

struct Watched {
  std::vector<std::string> lines;
  std::int64_t steps = 0;
  std::function<void(std::int64_t)> on_step;
  Observer observer() {
    return {[this](const std::string& line) { lines.push_back(line); },
            [this](const runs::TrainState& state, double, double) {
              ++steps;
              if (on_step) on_step(state.step);
            },
            {},
            {},
            {}};
  }
};

// Losses and evaluations by step, without clocks and rates.
inline std::vector<nlohmann::json> numbers_of(const std::string& folder) {
  std::vector<nlohmann::json> all;
  std::istringstream lines(cosformer::testing::read_bytes(folder + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json entry = nlohmann::json::parse(line);
    entry.erase("seconds");
    entry.erase("tokens_per_second");
    all.push_back(std::move(entry));
  }
  return all;
}

// Trains until the end; `train_once` is interrupted after each step that `interrupts` says. Returns how often it was
// begun.
inline int train_with_interruptions(const std::function<TrainResult(Watched&)>& train_once,
                                    const std::function<bool(std::int64_t step)>& interrupts) {
  for (int processes = 1; processes < 50; ++processes) {
    Watched watched;
    watched.on_step = [&](std::int64_t step) {
      if (interrupts(step)) std::raise(SIGINT);
    };
    if (train_once(watched).ending != Ending::kInterrupted) return processes;
  }
  throw std::logic_error("the training does not end");
}

// Interrupted after every seventh step, and before an evaluation, a training of 24 steps that logs every third and
// evaluates every tenth goes as one that is not, whose result is returned.
inline TrainResult expect_exact_resume(const cosformer::testing::TemporaryDirectory& folder,
                                       const std::function<TrainResult(const std::string& run, Watched&)>& train_in) {
  const std::string whole = folder.file("whole"), parts = folder.file("parts");
  Watched watched;
  const TrainResult expected = train_in(whole, watched);
  const int processes = train_with_interruptions([&](Watched& w) { return train_in(parts, w); },
                                                 [](std::int64_t step) { return step % 7 == 0 || step == 10; });
  EXPECT_EQ(processes, 5);
  EXPECT_EQ(numbers_of(parts), numbers_of(whole));
  EXPECT_EQ(numbers_of(whole).size(), 8 + 3U);
  using cosformer::testing::read_bytes;
  EXPECT_EQ(read_bytes(runs::best_weights_path(parts)), read_bytes(runs::best_weights_path(whole)));
  return expected;
}

}  // namespace cosformer::train
