#include "train/result_writing.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/files/atomic_file.h"
#include "runs/result_file.h"

namespace cosformer::train {

void write_result(const std::string& run, const runs::RunConfig& config, const std::string& label,
                  const TrainResult& result) {
  const runs::TrainState& state = result.state;
  nlohmann::ordered_json json{
      {"attention", label},
      {"task", config.data.task},
      {"parameters", result.parameters},
      {"steps", state.step},
      {"best_step", state.best_step},
      {"seconds", state.seconds},
      {"tokens", state.tokens},
      {"tokens_per_second", result.tokens_per_second},
      {"steps_per_second", static_cast<double>(state.step) / std::max(state.training_seconds, 1e-9)},
      {"peak_memory", result.peak_memory},
      {"peak_resident", result.peak_resident},
  };
  if (!state.continued_at.empty()) json["continued_at"] = state.continued_at;
  for (const auto& [name, value] : result.valid.metrics) json["valid_" + name] = value;
  for (const auto& [name, value] : result.test.metrics) json["test_" + name] = value;
  for (const auto& [name, amount] : result.test.amounts) json["test_" + name] = amount;
  if (result.test.batches > 0) {
    json["test_batches_per_second"] = static_cast<double>(result.test.batches) / std::max(result.test.seconds, 1e-9);
  }
  const std::string text = json.dump(1) + '\n';
  AtomicFile file(runs::result_path(run));
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace cosformer::train
