#include "cli/attention_map/attention_look.h"

#include <array>
#include <cstdio>
#include <filesystem>

#include <ATen/ATen.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/table.h"
#include "cli/attention_map/attention_picture.h"
#include "cli/terminal/progress_line.h"
#include "nn/mechanisms/attention_weights.h"
#include "nn/multi_head_attention.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;

// More of the output than this that the weights do not explain means that they are not the weights.
constexpr double kMostDeviation = 1e-3;

constexpr std::int64_t kMostTokens = 8192;

std::string tsv_of(const at::Tensor& weights) {
  const at::Tensor host = weights.to(at::kDouble).cpu().contiguous();
  const double* row = host.data_ptr<double>();
  std::string text;
  std::array<char, 32> number{};
  for (std::int64_t i = 0; i < host.size(0); ++i) {
    for (std::int64_t j = 0; j < host.size(1); ++j) {
      std::snprintf(number.data(), number.size(), j == 0 ? "%.9g" : "\t%.9g", *row++);
      text += number.data();
    }
    text += '\n';
  }
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

void report(const LookOptions& o, const std::vector<SeenModel>& all, const std::vector<std::string>& files) {
  nlohmann::ordered_json json{{"layer", o.layer}, {"head", o.head}, {"files", files}};
  json["models"] = nlohmann::ordered_json::array();
  Table table({"", "head", "negative weights", "mean distance", "within 16 tokens", "entropy"});
  for (const SeenModel& looked : all) {
    nlohmann::ordered_json heads = nlohmann::ordered_json::array();
    for (std::int64_t head = 0; head < looked.weights.size(0); ++head) {
      const nn::WeightSummary s = nn::summarize_weights(looked.weights[head]);
      table.add({looked.name, std::to_string(head + 1), significant(100 * s.negative_share) + "%",
                 significant(s.mean_distance) + " tokens", significant(100 * s.near_share) + "%",
                 significant(s.entropy) + " nats"});
      heads.push_back({{"head", head + 1},
                       {"negative_share", s.negative_share},
                       {"mean_distance", s.mean_distance},
                       {"share_within_16", s.near_share},
                       {"entropy", s.entropy}});
    }
    json["models"].push_back({{"name", looked.name},
                              {"tokens", looked.weights.size(1)},
                              {"output_deviation", looked.deviation},
                              {"heads", heads}});
  }
  write_file((fs::path(o.out) / "summary.json").string(), json.dump(1) + "\n");
  if (o.json) {
    std::printf("%s\n", json.dump(1).c_str());
    return;
  }
  std::printf("layer %lld, %lld tokens; each row of weights is a query\n\n%s\n", o.layer,
              static_cast<long long>(all.front().weights.size(1)), table.text().c_str());
  for (const SeenModel& looked : all) {
    std::printf("%s: weights times values give the layer's output within %s of its greatest value\n",
                looked.name.c_str(), significant(looked.deviation, 2).c_str());
  }
  for (const std::string& file : files) std::printf("%s\n", file.c_str());
}

}  // namespace

SeenModel look(torch::nn::Module& model, const std::string& name, long long layer,
               const std::function<void()>& forward) {
  std::vector<std::shared_ptr<nn::MultiHeadAttention>> layers;
  for (const auto& module : model.modules()) {
    if (auto attention = std::dynamic_pointer_cast<nn::MultiHeadAttention>(module)) layers.push_back(attention);
  }
  if (static_cast<std::size_t>(layer) > layers.size()) {
    throw UserError(fmt::format("--layer {}: {} has layers 1 to {}", layer, name, layers.size()));
  }
  nn::MultiHeadAttention& attention = *layers[static_cast<std::size_t>(layer) - 1];
  const data::Progress progress = progress_line(name, "tokens");
  const auto recorder =
      std::make_shared<nn::WeightRecorder>(attention.mechanism, [&](std::int64_t done, std::int64_t total) {
        progress(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
      });
  attention.mechanism = recorder;
  const at::NoGradGuard no_grad;
  forward();
  SeenModel seen{name, recorder->weights()[0], {}, recorder->deviation()};
  if (!(seen.deviation <= kMostDeviation)) {
    throw Failure(fmt::format(
        "the weights of {} times its values are not its output (off by {}%): its output is not a sum of values", name,
        significant(100 * seen.deviation)));
  }
  return seen;
}

void require_few_tokens(std::int64_t tokens) {
  if (tokens <= kMostTokens) return;
  throw UserError(
      fmt::format("the input has {} tokens; the weights of more than {} are too many to write down: give a shorter one",
                  with_commas(tokens), with_commas(kMostTokens)));
}

void write_looks(const LookOptions& o, const std::vector<SeenModel>& models) {
  for (const SeenModel& seen : models) {
    if (o.head > seen.weights.size(0)) {
      throw UserError(fmt::format("--head {}: {} has heads 1 to {}", o.head, seen.name, seen.weights.size(0)));
    }
  }
  std::error_code error;
  fs::create_directories(o.out, error);
  if (error) throw file_failure("make the folder", o.out, error.value());
  std::vector<std::string> files;
  std::vector<AttentionPicture> pictures;
  for (std::size_t at = 0; at < models.size(); ++at) {
    const at::Tensor weights = models[at].weights[o.head - 1];
    files.push_back((fs::path(o.out) / ("weights-" + std::to_string(at + 1) + ".tsv")).string());
    write_file(files.back(), tsv_of(weights));
    pictures.push_back({models[at].name, weights, models[at].tokens});
  }
  files.push_back(draw_attention(pictures, (fs::path(o.out) / "map").string()));
  report(o, models, files);
}

}  // namespace cosformer::cli
