#include "runs/result_file.h"

#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/regular_file.h"
#include "base/formats/json_text.h"

namespace cosformer::runs {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;

}  // namespace

std::string result_path(const std::string& run) {
  return (std::filesystem::path(run) / "result.json").string();
}

std::optional<nlohmann::ordered_json> read_result(const std::string& run) {
  const std::string path = result_path(run);
  if (!std::filesystem::exists(path)) return std::nullopt;
  auto result = parse_json<nlohmann::ordered_json>(read_regular_file(path, kMostBytes, "a result"), path);
  if (!result.is_object()) throw UserError(fmt::format("'{}' is not as it was written: expected a JSON object", path));
  return result;
}

std::optional<ResultSummary> read_result_summary(const std::string& run) {
  const std::optional<nlohmann::ordered_json> result = read_result(run);
  if (!result) return std::nullopt;
  const nlohmann::json object(*result);
  const std::string path = result_path(run);
  const auto number = [&](const char* key) { return json_number(object, key, 0, path); };
  ResultSummary summary;
  summary.parameters = json_whole(object, "parameters", 0, path);
  summary.seconds = number("seconds");
  summary.tokens_per_second = number("tokens_per_second");
  summary.steps_per_second = number("steps_per_second");
  summary.test_batches_per_second = number("test_batches_per_second");
  summary.peak_memory = number("peak_memory");
  summary.peak_resident = number("peak_resident");
  summary.test_examples = number("test_examples");
  summary.test_accuracy = number("test_accuracy");
  summary.test_loss = number("test_loss");
  summary.test_bits_per_byte = number("test_bits_per_byte");
  return summary;
}

}  // namespace cosformer::runs
