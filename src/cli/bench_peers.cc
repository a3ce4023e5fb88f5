#include "cli/bench_peers.h"

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/table.h"
#include "cli/lists.h"
#include "cli/numbers.h"
#include "cli/python_script.h"

namespace cosformer::cli {
namespace {

using nlohmann::json;

struct Settings {
  std::string lengths = "1024,4096", dtype = "float32", device = "cpu", json_file, scripts, python;
  long long heads = 8, dim = 64, batch = 1;
  int threads = 0;
  double seconds = 1;
};

std::vector<json> run_script(const Settings& s, int threads) {
  const std::string command = "exec " + shell_quoted(find_python_with_torch("bench peers", s.python)) + " " +
                              shell_quoted(find_script("bench peers", "attention.py", s.scripts).string()) +
                              " --library " + shell_quoted(library_path()) + " --device " + s.device + " --threads " +
                              std::to_string(threads) + " --lengths " + s.lengths + " --batch " +
                              std::to_string(s.batch) + " --heads " + std::to_string(s.heads) + " --dim " +
                              std::to_string(s.dim) + " --dtype " + s.dtype + " --seconds " + std::to_string(s.seconds);
  std::printf("%s\n", command.c_str() + 5);
  std::vector<json> lines;
  const bool ended_well = run_json_lines(command, [&](json line) {
    const std::string result =
        line.contains("median_ms") ? significant(line["median_ms"].get<double>()) + " ms" : std::string("skipped");
    std::fprintf(stderr, "%s %s %s N=%lld: %s\n", line["peer"].get<std::string>().c_str(),
                 line["causal"].get<bool>() ? "causal" : "full", line["pass"].get<std::string>().c_str(),
                 line["length"].get<long long>(), result.c_str());
    lines.push_back(std::move(line));
  });
  if (!ended_well || lines.empty()) {
    throw Failure("bench peers: the script stopped after " + std::to_string(lines.size()) +
                  " measurements (see above)");
  }
  return lines;
}

std::string key_of(const json& line) {
  return line["causal"].dump() + line["pass"].dump() + line["length"].dump();
}

void print_ratios(const std::vector<json>& lines) {
  std::map<std::string, double> ours;
  for (const json& line : lines) {
    if (line["peer"] == "ours" && line.contains("median_ms")) ours[key_of(line)] = line["median_ms"];
  }
  Table table({"mask", "pass", "N", "peer", "median ms", "ours is faster by", "error"});
  for (const json& line : lines) {
    std::vector<std::string> row{line["causal"].get<bool>() ? "causal" : "full", line["pass"],
                                 std::to_string(line["length"].get<long long>()), line["peer"]};
    if (line.contains("median_ms")) {
      const double time = line["median_ms"];
      const bool has_error = line.contains("max_error") && !line["max_error"].is_null();
      row.push_back(significant(time));
      row.push_back(line["peer"] == "ours" ? "" : significant(time / ours[key_of(line)]) + "×");
      row.push_back(has_error ? significant(line["max_error"].get<double>(), 2) : "");
    } else {
      row.insert(row.end(), 2, "");
      row.push_back(line.value("skipped", std::string("skipped")));
    }
    table.add(std::move(row));
  }
  std::fputs(table.text().c_str(), stdout);
}

void bench_peers(const Settings& s) {
  parse_numbers("--lengths", s.lengths, 1, 1LL << 30);
  std::optional<AtomicFile> output;  // opened first: a path that cannot be written is no news after an hour
  if (!s.json_file.empty()) output.emplace(s.json_file);
  const int threads = s.threads > 0 ? s.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const std::vector<json> lines = run_script(s, threads);
  print_ratios(lines);
  if (!output.has_value()) return;
  std::string text;
  for (const json& line : lines) text += line.dump() + '\n';
  output->write(text.data(), text.size());
  output->commit();
}

}  // namespace

void add_bench_peers(CLI::App& app) {
  const auto s = std::make_shared<Settings>();
  app.footer(
      "Runs bench/peers/attention.py with a Python that has torch: the released cosFormer's forms, a chunked form and\n"
      "softmax written in torch, this operator, and a copy of as many bytes as a pass has to read and write, in one\n"
      "process with the same threads. Prints how many times faster the operator is (beside the copy: how near it is);\n"
      "errors are against the definition in float64.");
  app.add_option("--lengths", s->lengths, "sequence lengths")->capture_default_str();
  app.add_option("--heads", s->heads, "heads")->check(whole_number(1, 65536))->capture_default_str();
  app.add_option("--dim", s->dim, "head dimension")->check(whole_number(1, 256))->capture_default_str();
  app.add_option("--batch", s->batch, "batch size")->check(whole_number(1, 1048576))->capture_default_str();
  app.add_option("--dtype", s->dtype, "float32, bfloat16 or float16")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->capture_default_str();
  app.add_option("--device", s->device, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}))->capture_default_str();
  app.add_option("--threads", s->threads, "CPU threads; 0: all cores")->check(thread_number())->capture_default_str();
  app.add_option("--seconds", s->seconds, "how long to repeat each measurement")
      ->check(real_number(0.01, 600.0))
      ->capture_default_str();
  app.add_option("--python", s->python, "the interpreter; default: the first python3 that has torch");
  app.add_option("--scripts", s->scripts, "the folder with attention.py; default: beside this program");
  app.add_option("--json", s->json_file, "also write one JSON object per line to this file");
  app.callback([s] { bench_peers(*s); });
}

}  // namespace cosformer::cli
