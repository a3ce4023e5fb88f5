#include "cli/compare_results.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/table.h"

namespace cosformer::cli {

std::string name_of(CellState state) {
  switch (state) {
    case CellState::kPlanned: return "planned";
    case CellState::kFinished: return "finished";
    case CellState::kFailed: return "failed";
    case CellState::kCannot: break;
  }
  return "cannot";
}

Sample sample_of(const std::vector<double>& values) {
  Sample sample;
  sample.count = values.size();
  if (values.empty()) return sample;
  for (const double value : values) sample.mean += value;
  sample.mean /= static_cast<double>(values.size());
  if (values.size() == 1) return sample;
  double squares = 0;
  for (const double value : values) squares += (value - sample.mean) * (value - sample.mean);
  sample.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return sample;
}

namespace {

CompareRow row_of(const std::vector<const CellResult*>& cells) {
  const CellResult& first = *cells.front();
  CompareRow row;
  row.task = first.task;
  row.name = first.name;
  row.attention = first.attention;
  row.is_variant = first.is_variant;
  row.planned = cells.size();
  row.parameters = first.parameters;
  std::array<std::vector<double>, 4> values;
  std::size_t planned = 0, failed = 0;
  std::string reason;
  for (const CellResult* cell : cells) {
    if (cell->state == CellState::kFinished) {
      values[0].push_back(cell->accuracy);
      values[1].push_back(cell->loss);
      values[2].push_back(cell->train_steps_per_s);
      values[3].push_back(cell->inference_steps_per_s);
      row.peak_bytes = std::max(row.peak_bytes, cell->peak_bytes);
    } else if (cell->state == CellState::kPlanned) {
      ++planned;
    } else {
      ++failed;
      if (reason.empty()) reason = cell->reason;
    }
  }
  row.accuracy = sample_of(values[0]);
  row.loss = sample_of(values[1]);
  row.train_steps_per_s = sample_of(values[2]);
  row.inference_steps_per_s = sample_of(values[3]);
  const auto of_all = [&](std::size_t count) {
    return cells.size() == 1 ? std::string() : std::to_string(count) + " of " + std::to_string(cells.size()) + " ";
  };
  if (first.state == CellState::kCannot) {
    row.note = "cannot be: " + reason;
  } else if (failed > 0) {
    row.note = of_all(failed) + "failed: " + reason;
  } else if (planned > 0) {
    row.note = of_all(planned) + "not run yet";
  }
  return row;
}

}  // namespace

std::vector<CompareRow> rows_of(const std::vector<CellResult>& cells) {
  std::vector<std::pair<std::pair<std::string, std::string>, std::vector<const CellResult*>>> groups;
  for (const CellResult& cell : cells) {
    const std::pair key{cell.task, cell.name};
    auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == key; });
    if (found == groups.end()) found = groups.insert(groups.end(), {key, {}});
    found->second.push_back(&cell);
  }
  std::vector<std::string> tasks;
  for (const auto& [key, members] : groups) {
    if (std::find(tasks.begin(), tasks.end(), key.first) == tasks.end()) tasks.push_back(key.first);
  }
  std::vector<CompareRow> rows;
  for (const std::string& task : tasks) {
    for (const auto& [key, members] : groups) {
      if (key.first == task) rows.push_back(row_of(members));
    }
  }
  return rows;
}

std::string percent_text(const Sample& share) {
  if (share.count == 0) return "";
  std::array<char, 64> text{};
  if (share.count == 1) {
    std::snprintf(text.data(), text.size(), "%.2f%%", 100 * share.mean);
  } else {
    std::snprintf(text.data(), text.size(), "%.2f ± %.2f%%", 100 * share.mean, 100 * share.deviation);
  }
  return text.data();
}

std::string compare_table(const std::vector<CompareRow>& rows, const std::vector<TaskFloors>& floors) {
  std::string text;
  std::vector<std::string> tasks;
  for (const CompareRow& row : rows) {
    if (std::find(tasks.begin(), tasks.end(), row.task) == tasks.end()) tasks.push_back(row.task);
  }
  for (const std::string& task : tasks) {
    Table table({task, "accuracy", "loss", "train steps/s", "inference steps/s", "peak memory", "parameters", ""});
    for (const TaskFloors& of_task : floors) {
      if (of_task.task != task) continue;
      for (const auto& [rule, accuracy] : of_task.floors) {
        table.add({"floor: " + rule, percent_text({1, accuracy, 0}), "", "", "", "", "", ""});
      }
    }
    for (const CompareRow& row : rows) {
      if (row.task != task) continue;
      if (row.accuracy.count == 0) {
        table.add({row.name, "", "", "", "", "", "", row.note});
        continue;
      }
      table.add({row.name, percent_text(row.accuracy), significant(row.loss.mean, 4),
                 significant(row.train_steps_per_s.mean), significant(row.inference_steps_per_s.mean),
                 human_bytes(row.peak_bytes), with_commas(row.parameters), row.note});
    }
    if (!text.empty()) text += '\n';
    text += table.text();
  }
  return text;
}

nlohmann::ordered_json to_json(const std::vector<CellResult>& cells, const std::vector<TaskFloors>& floors,
                               const std::vector<SpeedPoint>& speed) {
  using nlohmann::ordered_json;
  ordered_json json{{"floors", ordered_json::array()},
                    {"rows", ordered_json::array()},
                    {"cells", ordered_json::array()},
                    {"speed", ordered_json::array()}};
  for (const TaskFloors& task : floors) {
    for (const auto& [rule, accuracy] : task.floors) {
      json["floors"].push_back({{"task", task.task}, {"rule", rule}, {"accuracy", accuracy}});
    }
  }
  const auto known = [](const Sample& sample, double value) {
    return sample.count > 0 ? ordered_json(value) : ordered_json(nullptr);
  };
  for (const CompareRow& row : rows_of(cells)) {
    json["rows"].push_back({{"task", row.task},
                            {"name", row.name},
                            {"attention", row.attention},
                            {"seeds", row.accuracy.count},
                            {"accuracy", known(row.accuracy, row.accuracy.mean)},
                            {"accuracy_deviation", known(row.accuracy, row.accuracy.deviation)},
                            {"loss", known(row.loss, row.loss.mean)},
                            {"train_steps_per_second", known(row.loss, row.train_steps_per_s.mean)},
                            {"inference_steps_per_second", known(row.loss, row.inference_steps_per_s.mean)},
                            {"peak_memory", known(row.loss, row.peak_bytes)},
                            {"parameters", row.parameters},
                            {"note", row.note}});
  }
  for (const CellResult& cell : cells) {
    ordered_json line{{"task", cell.task}, {"name", cell.name},     {"attention", cell.attention},
                      {"seed", cell.seed}, {"folder", cell.folder}, {"state", name_of(cell.state)}};
    if (!cell.reason.empty()) line["reason"] = cell.reason;
    if (cell.state == CellState::kFinished) {
      line["accuracy"] = cell.accuracy;
      line["loss"] = cell.loss;
      line["train_steps_per_second"] = cell.train_steps_per_s;
      line["inference_steps_per_second"] = cell.inference_steps_per_s;
      line["peak_memory"] = cell.peak_bytes;
      line["parameters"] = cell.parameters;
      line["seconds"] = cell.seconds;
    }
    json["cells"].push_back(std::move(line));
  }
  for (const SpeedPoint& p : speed) {
    ordered_json line{{"name", p.name}, {"attention", p.attention}, {"length", p.length}};
    if (p.skipped.empty()) {
      line["train_steps_per_second"] = p.train_steps_per_s;
      line["inference_steps_per_second"] = p.inference_steps_per_s;
      line["peak_memory"] = p.peak_bytes;
      line["parameters"] = p.parameters;
    } else {
      line["skipped"] = p.skipped;
    }
    json["speed"].push_back(std::move(line));
  }
  return json;
}

}  // namespace cosformer::cli
