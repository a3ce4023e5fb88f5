// What to try where a model is no better than rules that understand nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cosformer::cli {

// How a training went, as far as the run's folder says.
struct TrainingSeen {
  std::int64_t steps = 0, best_step = 0;
  std::optional<double> train_loss, valid_loss;  // at its end
  double guessing_loss = 0;                      // of giving every class the same probability; 0: there are none
  double lr = 0;
  bool reads_text = false;  // so that it may begin as a language model
  bool has_initial_weights = false;
  bool is_plain = false;  // attention "cosformer", which has a stronger preset
};

// Lines that begin "the model is not better than …", with what to try and why; `reached` and `floor` in words.
std::string floor_advice(const std::string& reached, const std::string& rule, const std::string& floor,
                         const TrainingSeen& seen);

}  // namespace cosformer::cli
