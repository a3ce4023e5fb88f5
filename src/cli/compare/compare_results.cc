#include "cli/compare/compare_results.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <fmt/core.h>

#include "base/share.h"
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
  row.is_language = first.is_language;
  std::array<std::vector<double>, 6> values;
  std::size_t planned = 0, failed = 0;
  double examples = 0;  // of the test part, the same for all seeds
  std::string reason;
  for (const CellResult* cell : cells) {
    if (cell->state == CellState::kFinished) {
      values[0].push_back(cell->accuracy);
      values[1].push_back(cell->loss);
      values[2].push_back(cell->train_steps_per_s);
      values[3].push_back(cell->inference_steps_per_s);
      values[4].push_back(cell->bits_per_byte);
      values[5].push_back(std::exp(cell->loss));
      row.peak_bytes = std::max(row.peak_bytes, cell->peak_bytes);
      examples = cell->test_examples;
    } else if (cell->state == CellState::kPlanned) {
      ++planned;
    } else {
      ++failed;
      if (reason.empty()) reason = cell->reason;
    }
  }
  row.accuracy = sample_of(values[0]);
  row.standard_error = standard_error(row.accuracy.mean, examples);
  row.loss = sample_of(values[1]);
  row.train_steps_per_s = sample_of(values[2]);
  row.inference_steps_per_s = sample_of(values[3]);
  if (row.is_language) {
    row.bits_per_byte = sample_of(values[4]);
    row.perplexity = sample_of(values[5]);
  }
  const auto of_all = [&](std::size_t count) {
    return cells.size() == 1 ? std::string() : fmt::format("{} of {} ", count, cells.size());
  };
  if (first.state == CellState::kCannot) {
    row.note = "cannot be: " + reason;
  } else if (failed > 0) {
    row.note = fmt::format("{}failed: {}", of_all(failed), reason);
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

std::string percent_text(const Sample& share, double standard_error) {
  if (share.count == 0) return "";
  std::array<char, 64> text{};
  if (share.count == 1 && standard_error > 0) {
    std::snprintf(text.data(), text.size(), "%.2f ± %.2f%%", 100 * share.mean, 100 * standard_error);
  } else if (share.count == 1) {
    std::snprintf(text.data(), text.size(), "%.2f%%", 100 * share.mean);
  } else {
    std::snprintf(text.data(), text.size(), "%.2f ± %.2f%%", 100 * share.mean, 100 * share.deviation);
  }
  return text.data();
}

std::vector<std::string> quality_titles(bool is_language) {
  return is_language ? std::vector<std::string>{"bits per byte", "perplexity"} : std::vector<std::string>{"accuracy"};
}

std::vector<std::string> quality_texts(const CompareRow& row) {
  if (row.accuracy.count == 0) return std::vector<std::string>(quality_titles(row.is_language).size());
  if (!row.is_language) return {percent_text(row.accuracy, row.standard_error)};
  const auto text = [](const Sample& sample) {
    return significant(sample.mean, 4) + (sample.count > 1 ? " ± " + significant(sample.deviation, 2) : "");
  };
  return {text(row.bits_per_byte), text(row.perplexity)};
}

std::vector<std::string> quality_texts(const TaskFloors& task, double floor) {
  if (task.bits_per_nat <= 0) return {percent_text({1, floor, 0})};
  return {significant(floor * task.bits_per_nat, 4), significant(std::exp(floor), 4)};
}

Sample quality_of(const CompareRow& row) {
  if (row.is_language) return row.bits_per_byte;
  return {row.accuracy.count, 100 * row.accuracy.mean, 100 * row.accuracy.deviation};
}

double quality_of(const TaskFloors& task, double floor) {
  return floor * (task.bits_per_nat > 0 ? task.bits_per_nat : 100);
}

namespace {

// A line of the table: the name, the quality's columns, then the others.
std::vector<std::string> line_of(const std::string& name, const std::vector<std::string>& quality,
                                 const std::vector<std::string>& others) {
  std::vector<std::string> line{name};
  line.insert(line.end(), quality.begin(), quality.end());
  line.insert(line.end(), others.begin(), others.end());
  return line;
}

}  // namespace

std::string explain_spread(const std::vector<CompareRow>& rows) {
  bool seeds = false, single = false;
  for (const CompareRow& row : rows) {
    seeds = seeds || row.accuracy.count > 1;
    single = single || (row.accuracy.count == 1 && row.standard_error > 0);
  }
  const std::string of_seeds = "± is the standard deviation over the seeds";
  const std::string of_one = "the standard error of its accuracy on the test part, to which the choice of seed adds";
  if (!seeds) return single ? "± is " + of_one : "";
  return of_seeds + (single ? "; of a single seed " + of_one : "");
}

std::string compare_table(const std::vector<CompareRow>& rows, const std::vector<TaskFloors>& floors) {
  std::string text;
  std::vector<std::string> tasks;
  for (const CompareRow& row : rows) {
    if (std::find(tasks.begin(), tasks.end(), row.task) == tasks.end()) tasks.push_back(row.task);
  }
  for (const std::string& task : tasks) {
    const bool is_language = std::any_of(rows.begin(), rows.end(),
                                         [&](const CompareRow& row) { return row.task == task && row.is_language; });
    Table table(line_of(task, quality_titles(is_language),
                        {"loss", "train steps/s", "inference steps/s", "peak memory", "parameters", ""}));
    for (const TaskFloors& of_task : floors) {
      if (of_task.task != task) continue;
      for (const auto& [rule, floor] : of_task.floors) {
        const std::string loss = is_language ? significant(floor, 4) : "";
        table.add(line_of("floor: " + rule, quality_texts(of_task, floor), {loss, "", "", "", "", ""}));
      }
    }
    for (const CompareRow& row : rows) {
      if (row.task != task) continue;
      if (row.accuracy.count == 0) {
        table.add(line_of(row.name, std::vector<std::string>(quality_titles(is_language).size()),
                          {"", "", "", "", "", row.note}));
        continue;
      }
      table.add(line_of(row.name, quality_texts(row),
                        {significant(row.loss.mean, 4), significant(row.train_steps_per_s.mean),
                         significant(row.inference_steps_per_s.mean), human_bytes(row.peak_bytes),
                         with_commas(row.parameters), row.note}));
    }
    if (!text.empty()) text += '\n';
    text += table.text();
  }
  const std::string spread = explain_spread(rows);
  if (!spread.empty()) text += spread + '\n';
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
    for (const auto& [rule, floor] : task.floors) {
      ordered_json line{{"task", task.task}, {"rule", rule}};
      if (task.bits_per_nat > 0) {
        line.update({{"loss", floor}, {"bits_per_byte", quality_of(task, floor)}, {"perplexity", std::exp(floor)}});
      } else {
        line["accuracy"] = floor;
      }
      json["floors"].push_back(std::move(line));
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
                            {"accuracy_standard_error", known(row.accuracy, row.standard_error)},
                            {"loss", known(row.loss, row.loss.mean)},
                            {"train_steps_per_second", known(row.loss, row.train_steps_per_s.mean)},
                            {"inference_steps_per_second", known(row.loss, row.inference_steps_per_s.mean)},
                            {"peak_memory", known(row.loss, row.peak_bytes)},
                            {"parameters", row.parameters},
                            {"note", row.note}});
    if (!row.is_language) continue;
    ordered_json& line = json["rows"].back();
    line.erase("accuracy");
    line.erase("accuracy_deviation");
    line["bits_per_byte"] = known(row.loss, row.bits_per_byte.mean);
    line["bits_per_byte_deviation"] = known(row.loss, row.bits_per_byte.deviation);
    line["perplexity"] = known(row.loss, row.perplexity.mean);
  }
  for (const CellResult& cell : cells) {
    ordered_json line{{"task", cell.task}, {"name", cell.name},     {"attention", cell.attention},
                      {"seed", cell.seed}, {"folder", cell.folder}, {"state", name_of(cell.state)}};
    if (!cell.reason.empty()) line["reason"] = cell.reason;
    if (cell.state == CellState::kFinished) {
      line[cell.is_language ? "bits_per_byte" : "accuracy"] = cell.is_language ? cell.bits_per_byte : cell.accuracy;
      if (!cell.is_language) line["accuracy_standard_error"] = standard_error(cell.accuracy, cell.test_examples);
      line["loss"] = cell.loss;
      line["train_steps_per_second"] = cell.train_steps_per_s;
      line["inference_steps_per_second"] = cell.inference_steps_per_s;
      line["peak_memory"] = cell.peak_bytes;
      line["parameters"] = cell.parameters;
      line["seconds"] = cell.seconds;
      if (!cell.recall.by_pairs.empty()) {
        line["accuracy_by_pairs"] = to_json(cell.recall.by_pairs);
        line["accuracy_by_distance"] = to_json(cell.recall.by_distance);
      }
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
