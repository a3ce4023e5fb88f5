#include "cli/runs/run_info.h"

#include <cstdio>
#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/table.h"
#include "cli/runs/run_kinds.h"
#include "runs/checkpoint.h"
#include "runs/data_record.h"
#include "runs/result_file.h"
#include "runs/run_bundle.h"
#include "runs/run_folder.h"
#include "train/reports/run_progress.h"

namespace cosformer::cli {
namespace {

using nlohmann::ordered_json;

ordered_json gather(const std::string& folder) {
  runs::RunConfig config = runs::read_run(folder);
  ordered_json info{{"run", folder}, {"attention", models::label_of(config.model)}};
  Settings settings;
  runs::add_settings(settings, config);
  // The values of our settings are written alike in TOML and in JSON.
  for (const Settings::Description& d : settings.descriptions()) {
    info["settings"][d.key] = ordered_json::parse(d.value);
  }
  const runs::DataRecord data = runs::data_record_of_run(folder);
  if (!data.description.empty()) info["data"] = data.description;
  if (!data.notes.empty()) info["data_notes"] = data.notes;
  for (const data::ClassCount& c : data.classes) {
    info["classes"].push_back({{"name", c.name}, {"training", c.train}, {"validation", c.valid}, {"test", c.test}});
  }
  if (const std::optional<train::RunProgress> progress = train::progress_of(folder)) {
    info["step"] = progress->step;
    info["total_steps"] = progress->total_steps;
    info["epochs"] = progress->epoch;
    info["best_step"] = progress->best_step;
    info["ended"] = progress->ended;
  }
  info["checkpoints"] = runs::checkpoint_steps(folder);
  if (std::filesystem::exists(runs::best_weights_path(folder))) {
    const OpenedModel model = kind_of_run(config).open(folder);
    info["attention"] = model.label;
    // Runs of before have no counts of them.
    if (!info.contains("classes")) {
      for (const std::string& name : model.classes) info["classes"].push_back({{"name", name}});
    }
    std::int64_t parameters = 0;
    for (const at::Tensor& parameter : model.module->parameters()) parameters += parameter.numel();
    info["parameters"] = parameters;
    for (const auto& item : model.module->named_parameters()) info["tensors"][item.key()] = item.value().sizes().vec();
  }
  if (runs::is_file(folder)) {
    if (const auto result = runs::read_bundle(folder, /*check_all=*/false).result) {
      info["result"] = ordered_json::parse(*result, nullptr, false);
    }
    return info;
  }
  if (std::optional<ordered_json> result = runs::read_result(folder)) info["result"] = std::move(*result);
  return info;
}

void print(const ordered_json& info, const std::string& folder) {
  std::printf("run          %s\nattention    %s\n", info["run"].get<std::string>().c_str(),
              info["attention"].get<std::string>().c_str());
  if (info.contains("parameters"))
    std::printf("parameters   %s\n", with_commas(info["parameters"].get<long long>()).c_str());
  if (info.contains("data")) std::printf("data         %s\n", info["data"].get<std::string>().c_str());
  if (info.contains("data_notes")) {
    for (const auto& note : info["data_notes"]) std::printf("note         %s\n", note.get<std::string>().c_str());
  }
  const std::optional<train::RunProgress> progress = train::progress_of(folder);
  std::printf("steps        %s\ncheckpoints  ",
              progress ? train::in_words(*progress, folder).c_str() : "none has been saved yet");
  for (const auto& step : info["checkpoints"]) std::printf("step %lld  ", step.get<long long>());
  std::printf("\n\n");
  Table settings({"setting", "value"});
  for (const auto& [key, value] : info["settings"].items()) settings.add({key, value.dump()});
  std::printf("%s", settings.text().c_str());
  if (info.contains("classes")) {
    Table classes({"class", "training", "validation", "test"});
    for (const auto& c : info["classes"]) {
      const auto count = [&](const char* part) {
        return c.contains(part) ? with_commas(c[part].get<long long>()) : "";
      };
      classes.add({c["name"].get<std::string>(), count("training"), count("validation"), count("test")});
    }
    std::printf("\n%s", classes.text().c_str());
  }
  if (info.contains("tensors")) {
    Table tensors({"tensor", "shape"});
    for (const auto& [name, shape] : info["tensors"].items()) tensors.add({name, shape.dump()});
    std::printf("\n%s", tensors.text().c_str());
  }
  if (info.contains("result")) {
    Table result({"result", "value"});
    for (const auto& [key, value] : info["result"].items()) {
      result.add({key, value.is_number_float() ? significant(value.get<double>(), 5) : value.dump()});
    }
    std::printf("\n%s", result.text().c_str());
  }
}

}  // namespace

void print_run(const std::string& folder, bool as_json) {
  const ordered_json info = gather(folder);
  if (as_json) {
    std::printf("%s\n", info.dump(1).c_str());
  } else {
    print(info, folder);
  }
}

}  // namespace cosformer::cli
