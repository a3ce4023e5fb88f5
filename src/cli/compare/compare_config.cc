#include "cli/compare/compare_config.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "base/error.h"
#include "cli/terminal/lists.h"
#include "nn/mechanisms/attention_config.h"
#include "runs/setting_readers.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;

struct CompareSection {
  std::vector<std::string> tasks, attention, lengths;
};

void add_settings(Settings& s, CompareSection& section, CompareConfig& c) {
  s.add("compare.tasks", section.tasks, "Models are compared on the tasks of these names.");
  s.add("compare.attention", section.attention, "Mechanisms of these names are compared, or all.");
  s.add("compare.seeds", c.seeds, "Each model is trained with this many seeds.", 1, 10000);
  s.add("compare.first_seed", c.first_seed, "Seeds are counted from this one on.");
  s.add("compare.match_parameters", c.match_parameters,
        "Feed-forward parts are adjusted so that all models have as many parameters as the first.");
  s.add("compare.threads", c.threads, "Every process has this many CPU threads; 0: as many as there are cores.", 0,
        4096);
  s.add("compare.lengths", section.lengths, "Speed and memory are measured at these lengths in tokens; [] for none.");
  s.add("compare.speed_batch", c.speed.batch, "A step whose speed is measured has this many sequences.", 1);
  s.add("compare.speed_seconds", c.speed.seconds, "Steps whose speed is measured are repeated for this many seconds.",
        0.01);
  s.add("compare.speed_step_limit", c.speed.step_seconds,
        "Steps that take longer than this many seconds are not measured.", 0.01);
  s.add("compare.speed_process_limit", c.speed.process_seconds,
        "Measurements that take longer than this many seconds are ended.", 1);
  s.add("compare.speed_precision", c.speed.precision, "Steps whose speed is measured compute in this number format.",
        {"fp32", "bf16"});
}

bool begins(const std::string& text, const std::string& with) {
  return text.rfind(with, 0) == 0;
}

// "cell[12].name" → 12 and "name"; `key` begins with `array` + "[".
std::pair<std::size_t, std::string> place_in(const std::string& key, const std::string& array) {
  const std::size_t end = key.find("].");
  return {std::stoul(key.substr(array.size() + 1, end)), key.substr(end + 2)};
}

const std::string& single(const TomlValue& value) {
  if (value.is_list)
    throw UserError(fmt::format("{}: '{}' must be a single value, not a list", value.where, value.key));
  return value.items.front();
}

void read_task(CompareConfig& c, const TomlValue& value, const std::string& folder) {
  const auto [at, key] = place_in(value.key, "task");
  if (at >= c.tasks.size()) c.tasks.resize(at + 1);
  ComparedTask& task = c.tasks[at];
  if (key == "name") {
    task.name = single(value);
  } else if (key == "config") {
    task.file = toml_values_of_file((fs::path(folder) / single(value)).string());
  } else if (key == "set") {
    task.assignments = value.items;
  } else {
    throw UserError(
        fmt::format("{}: a [[task]] has name, config (a file beside this one) and set; got '{}'", value.where, key));
  }
}

void read_cell(std::vector<ComparedModel>& cells, const TomlValue& value) {
  const auto [at, key] = place_in(value.key, "cell");
  if (at >= cells.size()) cells.resize(at + 1);
  ComparedModel& cell = cells[at];
  cell.is_variant = true;
  if (key == "name") {
    cell.name = single(value);
  } else if (key == "attention") {
    cell.attention = single(value);
  } else if (key == "set") {
    cell.assignments = value.items;
  } else {
    throw UserError(fmt::format("{}: a [[cell]] has name, attention and set; got '{}'", value.where, key));
  }
}

std::vector<std::string> mechanisms(const std::vector<std::string>& names, const std::string& where) {
  if (names == std::vector<std::string>{"all"}) return nn::attention_names();
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  if (text.empty()) return {};
  std::vector<std::string> known = nn::attention_names();
  known.emplace_back("all");
  parse_names(where.c_str(), text, known);
  if (std::find(names.begin(), names.end(), "all") != names.end()) {
    throw UserError(where + ": 'all' stands alone; it means every mechanism");
  }
  return names;
}

void require_complete(const CompareConfig& c, const std::string& where) {
  std::set<std::string> names;
  for (const ComparedTask& task : c.tasks) {
    if (task.name.empty()) throw UserError(where + ": a [[task]] needs a name, which its folder and rows get");
    if (!names.insert(task.name).second)
      throw UserError(fmt::format("{}: two tasks are called '{}'", where, task.name));
  }
  names.clear();
  for (const ComparedModel& model : c.models) {
    if (model.name.empty() || model.attention.empty()) {
      throw UserError(where + ": a [[cell]] needs a name and an attention");
    }
    mechanisms({model.attention}, fmt::format("{}: attention of cell '{}'", where, model.name));
    if (!names.insert(model.name).second)
      throw UserError(fmt::format("{}: two cells are called '{}'", where, model.name));
  }
  if (c.models.empty()) {
    throw UserError("nothing to compare: name mechanisms with --attention cosformer,softmax (or all), or in a file " +
                    std::string("with --config; configs/compare/ has examples"));
  }
}

// A setting of all tasks that none of them reads, and one of a task that this task does not read.
void require_read_settings(const CompareConfig& c) {
  std::optional<std::vector<std::string>> by_none;
  for (const ComparedTask& task : c.tasks) {
    runs::RunConfig own_config, config;
    Settings own, all;
    runs::add_settings(own, own_config);
    runs::add_settings(all, config);
    all.read_values(c.settings);
    for (Settings* settings : {&own, &all}) {
      settings->read_values(task.file);
      for (const std::string& assignment : task.assignments) settings->assign(assignment);
    }
    for (const std::string& assignment : c.assignments) all.assign(assignment);
    runs::require_read(own, config.data);
    const std::vector<std::string> unread = runs::unread_settings(all, config.data);
    if (!by_none) by_none = unread;
    std::erase_if(*by_none,
                  [&](const std::string& key) { return std::find(unread.begin(), unread.end(), key) == unread.end(); });
  }
  if (!by_none || by_none->empty()) return;
  std::string list;
  for (const std::string& key : *by_none) list += (list.empty() ? "" : ", ") + runs::with_readers(key);
  throw UserError(fmt::format("settings: no task of this comparison reads {}; leave that out", list));
}

// Settings that no cell could have are refused before anything runs.
void require_known_settings(const CompareConfig& c) {
  runs::RunConfig run;
  Settings settings;
  runs::add_settings(settings, run);
  settings.read_values(c.settings);
  for (const std::string& assignment : c.assignments) settings.assign(assignment);
  for (const ComparedTask& task : c.tasks) {
    settings.read_values(task.file);
    for (const std::string& assignment : task.assignments) settings.assign(assignment);
  }
  for (const ComparedModel& model : c.models) {
    for (const std::string& assignment : model.assignments) settings.assign(assignment);
  }
}

void apply_flags(CompareConfig& c, CompareSection& section, std::vector<ComparedModel>& cells,
                 const CompareFlags& flags) {
  if (!flags.attention.empty()) {
    section.attention = split_list(flags.attention);
    cells.clear();
  }
  if (!flags.lengths.empty()) section.lengths = split_list(flags.lengths);
  if (flags.lengths == "none") section.lengths.clear();
  if (flags.seeds > 0) c.seeds = flags.seeds;
  if (flags.unmatched) c.match_parameters = false;
  if (!flags.task.empty()) {
    std::vector<ComparedTask> chosen;
    for (const std::string& name : split_list(flags.task)) {
      const auto known = std::find_if(c.tasks.begin(), c.tasks.end(), [&](const auto& t) { return t.name == name; });
      chosen.push_back(known != c.tasks.end() ? *known : ComparedTask{name, {}, {"data.task=" + name}});
    }
    c.tasks = chosen;
    section.tasks.clear();
  }
  if (!flags.data_path.empty()) c.assignments.push_back("data.path=" + flags.data_path);
  if (!flags.device.empty()) c.assignments.push_back("train.device=" + flags.device);
  if (flags.steps > 0) c.assignments.push_back("train.steps=" + std::to_string(flags.steps));
}

}  // namespace

CompareConfig compare_config_from(const CompareFlags& flags) {
  CompareConfig c;
  CompareSection section;
  section.lengths = {"1024", "2048", "4096"};
  if (flags.speed_only) section.lengths = {"1024", "2048", "3072", "4096", "8192", "16384", "32768", "65536"};
  const std::vector<std::string> lengths_before = section.lengths;
  Settings settings;
  add_settings(settings, section, c);
  std::vector<ComparedModel> cells;
  c.assignments = flags.assignments;
  std::string where = "compare";
  if (!flags.config.empty()) {
    where = flags.config;
    const std::string folder = fs::path(flags.config).parent_path().string();
    std::vector<TomlValue> own;
    for (const TomlValue& value : toml_values_of_file(flags.config)) {
      if (begins(value.key, "cell[")) {
        read_cell(cells, value);
      } else if (begins(value.key, "task[")) {
        read_task(c, value, folder);
      } else if (begins(value.key, "compare.")) {
        own.push_back(value);
      } else {
        c.settings.push_back(value);
      }
    }
    for (const TomlValue& value : own) {  // a list may also be a single text
      std::string text;
      for (const std::string& item : value.items) text += (text.empty() ? "" : ",") + item;
      settings.set(value.key, text, value.where);
    }
    if (flags.speed_only && !settings.was_set("compare.lengths")) section.lengths = lengths_before;
  }
  apply_flags(c, section, cells, flags);
  for (const std::string& name : section.tasks) c.tasks.push_back({name, {}, {"data.task=" + name}});
  for (const std::string& name : mechanisms(section.attention, flags.attention.empty() ? where : "--attention")) {
    c.models.push_back({name, name, {}, false});
  }
  c.models.insert(c.models.end(), cells.begin(), cells.end());
  std::string lengths;
  for (const std::string& length : section.lengths) lengths += (lengths.empty() ? "" : ",") + length;
  if (!lengths.empty()) c.speed.lengths = parse_numbers("--lengths", lengths, 1, 1LL << 30);
  if (c.tasks.empty()) {
    const runs::RunConfig run = [&] {
      runs::RunConfig r;
      Settings s;
      runs::add_settings(s, r);
      s.read_values(c.settings);
      for (const std::string& assignment : c.assignments) s.assign(assignment);
      return r;
    }();
    c.tasks.push_back({run.data.task, {}, {}});
  }
  require_complete(c, where);
  require_known_settings(c);
  require_read_settings(c);
  c.name = !flags.config.empty() ? fs::path(flags.config).stem().string() : c.tasks.front().name;
  if (flags.speed_only) c.name = flags.config.empty() && flags.task.empty() ? "speed" : c.name + "-speed";
  return c;
}

runs::RunConfig run_config_of(const CompareConfig& config, const ComparedTask& task, const ComparedModel& model,
                              std::int64_t seed) {
  runs::RunConfig run;
  Settings settings;
  runs::add_settings(settings, run);
  settings.read_values(config.settings);
  settings.read_values(task.file);
  for (const std::string& assignment : task.assignments) settings.assign(assignment);
  for (const std::string& assignment : config.assignments) settings.assign(assignment);
  settings.set("model.attention", model.attention, "attention");
  for (const std::string& assignment : model.assignments) settings.assign(assignment);
  settings.set("train.seed", std::to_string(seed), "seed");
  runs::apply_presets(run, settings);
  runs::require_possible(run);
  return run;
}

}  // namespace cosformer::cli
