// RUN/result.json: what a training came to, as others read it back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace cosformer::runs {

std::string result_path(const std::string& run);

// The object in it, in its order; nothing where there is no such file. Throws UserError when it is not as it was
// written.
std::optional<nlohmann::ordered_json> read_result(const std::string& run);

// Of it what tables show; 0 where it is not told.
struct ResultSummary {
  std::int64_t parameters = 0;
  double seconds = 0, tokens_per_second = 0, steps_per_second = 0, test_batches_per_second = 0;
  double peak_memory = 0, peak_resident = 0;  // bytes: of tensors, of the process
  double test_examples = 0, test_accuracy = 0, test_loss = 0, test_bits_per_byte = 0;
};
std::optional<ResultSummary> read_result_summary(const std::string& run);

}  // namespace cosformer::runs
