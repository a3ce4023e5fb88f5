#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/progress.h"
#include "base/table.h"
#include "cli/bench/bench_train.h"
#include "cli/bench/python_script.h"
#include "cli/command.h"
#include "cli/terminal/child_process.h"

namespace cosformer::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Losses of equal models after some steps differ by rounding that the steps have multiplied; a wrong mask, scale or
// optimiser differs by far more.
constexpr double kMostLossDifference = 1e-4;

// A folder that goes away with its content.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "cosformer-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw Failure("cannot make a folder in " + fs::temp_directory_path().string());
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

struct Contender {
  std::string name;
  bool is_ours = false;
  std::string attention;  // ours: the mechanism; a peer: its name in train.py
  std::string same_as;    // the contender of ours whose losses it must have
};

std::vector<Contender> contenders(bool causal, const std::string& device) {
  std::vector<Contender> all{{"ours: cosformer", true, "cosformer", ""}, {"ours: softmax", true, "softmax", ""}};
  all.push_back({"torch: released", false, "released", "ours: cosformer"});
  if (device == "cuda") all.push_back({"torch: released, compiled", false, "released_compiled", "ours: cosformer"});
  if (causal) all.push_back({"torch: chunked", false, "chunked_torch", "ours: cosformer"});
  all.push_back({"torch: softmax", false, "softmax", "ours: softmax"});
  return all;
}

std::string arguments_of(const TrainCase& c, const TrainEffort& e) {
  std::ostringstream text;
  text << " --batch " << c.batch << " --width " << c.width << " --layers " << c.layers << " --heads " << c.heads
       << " --feed-forward " << c.feed_forward << " --dropout " << c.dropout << " --device " << c.device
       << " --precision " << (c.bfloat16 ? "bf16" : "fp32") << " --threads " << c.threads << " --seconds " << e.seconds
       << " --most-seconds " << e.most_seconds;
  return text.str();
}

class Rounds {
 public:
  Rounds(const TrainEffort& effort, const TrainPeersOptions& options)
      : effort_(effort),
        python_(find_python_with_torch("bench train", options.python)),
        script_(find_script("bench train", "train.py", options.scripts).string()) {}

  // One measurement in a process of its own, so that memory counts from nothing and no allocator is warm.
  json measure(const Contender& who, const TrainCase& c) const {
    const std::string exchange = " --exchange " + shell_quoted(folder_.file("exchange.safetensors"));
    std::string command;
    if (who.is_ours) {
      const std::string line = shell_quoted(folder_.file("line.json"));
      command =
          fmt::format("{} bench train --attention {} --lengths {} --causal {}{}{} --json {} > /dev/null && cat {}",
                      shell_quoted(fs::read_symlink("/proc/self/exe").string()), who.attention, c.length,
                      c.causal ? "yes" : "no", exchange, arguments_of(c, effort_), line, line);
    } else {
      command = fmt::format("{} {} --peer {} --length {}{}{} --most-bytes {}{}", measured_python(python_),
                            shell_quoted(script_), who.attention, c.length, c.causal ? " --causal" : "", exchange,
                            static_cast<long long>(0.8 * available_memory()), arguments_of(c, effort_));
    }
    json result;
    const std::string errors = folder_.file("errors.txt");
    const bool ended_well = run_json_lines(fmt::format("{{ {}; }} 2> {}", command, shell_quoted(errors)),
                                           [&](json line) { result = std::move(line); });
    if (result.is_null()) {
      const std::string last = last_line_of(errors);
      if (!last.empty()) std::fprintf(stderr, "%s: %s\n", who.name.c_str(), last.c_str());
      result = {{"bench", "train"}, {"skipped", ended_well ? "said nothing" : "failed: " + last}};
    }
    result["contender"] = who.name;
    result["causal"] = c.causal;
    result["length"] = c.length;
    return result;
  }

 private:
  TrainEffort effort_;
  std::string python_, script_;
  TemporaryFolder folder_;
};

bool was_measured(const json& line) {
  return !line.contains("skipped");
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double memory_of(const json& line) {
  return line["device"] == "cuda" ? line["peak_bytes"] : line["resident_bytes"];
}

double loss_difference(const json& a, const json& b) {
  double most = std::nan("");
  const json &x = a["losses"], &y = b["losses"];
  for (std::size_t at = 0; at < std::min(x.size(), y.size()); ++at) {
    const double difference = x[at].is_number() && y[at].is_number()
                                  ? std::abs(x[at].get<double>() - y[at].get<double>())
                                  : std::numeric_limits<double>::infinity();
    most = at == 0 ? difference : std::max(most, difference);
  }
  return most;
}

// All rounds of one length and mask: by contender, a line per round.
using Block = std::map<std::string, std::vector<json>>;

double over_rounds(const std::vector<json>& lines, const std::vector<json>& ours,
                   double (*value)(const json& line, const json& our_line)) {
  std::vector<double> values;
  for (std::size_t round = 0; round < lines.size(); ++round) values.push_back(value(lines[round], ours[round]));
  return median(values);
}

std::string reason(const std::vector<json>& lines) {
  for (const json& line : lines) {
    if (!was_measured(line)) return line["skipped"];
  }
  return "";
}

// Adds the rows of a block; returns whether equal models had equal losses.
bool add_rows(Table& table, const TrainCase& c, const std::vector<Contender>& all, const Block& block) {
  const std::vector<json>& ours = block.at("ours: cosformer");
  bool equal = true;
  for (const Contender& who : all) {
    const std::vector<json>& lines = block.at(who.name);
    std::vector<std::string> row{std::to_string(c.length), c.causal ? "causal" : "full", who.name};
    if (!reason(lines).empty()) {
      row.insert(row.end(), 6, "");
      row.push_back(reason(lines));
      table.add(std::move(row));
      continue;
    }
    const double ms =
        over_rounds(lines, lines, [](const json& l, const json&) { return l["median_ms"].get<double>(); });
    const double memory = over_rounds(lines, lines, [](const json& l, const json&) { return memory_of(l); });
    row.insert(row.end(), {significant(ms), with_commas(static_cast<long long>(c.batch * c.length / ms * 1e3)),
                           human_bytes(memory), with_commas(lines[0]["parameters"].get<long long>())});
    if (who.name == "ours: cosformer" || !reason(ours).empty()) {
      row.insert(row.end(), 2, "");
    } else {
      row.push_back(significant(over_rounds(lines, ours,
                                            [](const json& l, const json& o) {
                                              return l["median_ms"].get<double>() / o["median_ms"].get<double>();
                                            })) +
                    "×");
      row.push_back(significant(over_rounds(lines, ours,
                                            [](const json& l, const json& o) { return memory_of(l) / memory_of(o); })) +
                    "×");
    }
    if (!who.same_as.empty() && c.dropout == 0 && reason(block.at(who.same_as)).empty()) {
      const double difference = loss_difference(lines[0], block.at(who.same_as)[0]);
      row.push_back(significant(difference, 2));
      if (!c.bfloat16 && !(difference <= kMostLossDifference)) equal = false;
    } else {
      row.emplace_back("");
    }
    table.add(std::move(row));
  }
  return equal;
}

}  // namespace

std::string bench_train_peers(const std::vector<TrainCase>& cases, const TrainEffort& effort,
                              const TrainPeersOptions& options) {
  std::vector<TrainCase> shapes;
  for (const TrainCase& c : cases) {
    if (c.attention == "cosformer") shapes.push_back(c);
  }
  long long total = 0;
  for (const TrainCase& c : shapes) {
    total += static_cast<long long>(contenders(c.causal, c.device).size()) * options.rounds;
  }
  const Rounds rounds(effort, options);
  Table table({"N", "mask", "model", "step ms", "tokens/s", "memory", "parameters", "ours is faster by",
               "ours takes less by", "loss differs by"});
  std::string text;
  bool equal = true;
  {
    Progress progress("bench", total, "measurements");
    for (const TrainCase& c : shapes) {
      const std::vector<Contender> all = contenders(c.causal, c.device);
      Block block;
      for (int round = 0; round < options.rounds; ++round) {
        for (const Contender& who : all) {
          progress.note(fmt::format("{}{} N={}", who.name, c.causal ? " causal" : " full", c.length));
          json line = rounds.measure(who, c);
          line["round"] = round;
          text += line.dump() + '\n';
          block[who.name].push_back(std::move(line));
          progress.advance();
        }
      }
      equal = add_rows(table, c, all, block) && equal;
    }
  }
  std::fputs(table.text().c_str(), stdout);
  std::printf(
      "medians of %d round(s) in which all took turns, each in a process of its own; ratios are to ours: cosformer\n",
      options.rounds);
  if (!equal) {
    std::fprintf(stderr,
                 "cosformer: losses of models that should be equal differ by more than %g; the times do not count\n",
                 kMostLossDifference);
    throw Unsuccessful{};
  }
  return text;
}

}  // namespace cosformer::cli
