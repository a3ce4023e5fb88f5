#include "cli/bench/bench_peers.h"

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/table.h"
#include "cli/bench/python_script.h"
#include "cli/terminal/lists.h"
#include "cli/terminal/numbers.h"

namespace cosformer::cli {
namespace {

using nlohmann::json;

struct Settings {
  std::string lengths = "1024,4096", dtype = "float32", device = "cpu", json_file, scripts, python, fla;
  long long heads = 8, dim = 64, batch = 1;
  int threads = 0;
  double seconds = 1;
};

// A measurement of one mask, pass and length, or of all of them.
struct Group {
  std::string lengths, causal = "both", pass = "both";
};

std::string arguments_of(const Settings& s, const Group& group, int threads) {
  return fmt::format(
      " --device {} --threads {} --lengths {} --causal {} --pass {} --batch {} --heads {} --dim {} --dtype {} "
      "--seconds {}{}",
      s.device, threads, group.lengths, group.causal, group.pass, s.batch, s.heads, s.dim, s.dtype, s.seconds,
      s.fla.empty() ? "" : " --fla " + shell_quoted(s.fla));
}

// Adds what the command says to `lines`, each with whether it was measured in the operator's process.
void run_script(const std::string& command, bool beside_ours, std::vector<json>& lines) {
  std::printf("%s\n", command.c_str());
  const bool ended_well = run_json_lines("exec " + command, [&](json line) {
    const std::string result =
        line.contains("median_ms") ? significant(line["median_ms"].get<double>()) + " ms" : std::string("skipped");
    std::fprintf(stderr, "%s %s %s N=%lld: %s\n", line["peer"].get<std::string>().c_str(),
                 line["causal"].get<bool>() ? "causal" : "full", line["pass"].get<std::string>().c_str(),
                 line["length"].get<long long>(), result.c_str());
    line["beside_ours"] = beside_ours;
    lines.push_back(std::move(line));
  });
  if (!ended_well || lines.empty()) {
    throw Failure(fmt::format("bench peers: the script stopped after {} measurements (see above)", lines.size()));
  }
}

// The operator and the peers in one process, or, where the interpreter that was asked for has another torch, the
// operator with peers in one process and the peers again in another, by turns, so that a machine that slows down slows
// both.
std::vector<json> measure(const Settings& s, int threads) {
  const std::string script = shell_quoted(find_script("bench peers", "attention.py", s.scripts).string());
  const bool apart = !s.python.empty() && !has_our_torch(s.python);
  if (apart && !has_torch(s.python)) {
    throw UserError(fmt::format("bench peers: --python '{}' is no Python that can import torch", s.python));
  }
  const std::string with_ours =
      fmt::format("{} {} --library {}", measured_python(find_python_with_torch("bench peers", apart ? "" : s.python)),
                  script, shell_quoted(library_path()));
  std::vector<json> lines;
  if (!apart) {
    run_script(with_ours + arguments_of(s, {.lengths = s.lengths}, threads), true, lines);
    return lines;
  }
  for (const long long length : parse_numbers("--lengths", s.lengths, 1, 1LL << 30)) {
    for (const char* const causal : {"yes", "no"}) {
      for (const char* const pass : {"fwd", "fwd+bwd"}) {
        const std::string arguments =
            arguments_of(s, {.lengths = std::to_string(length), .causal = causal, .pass = pass}, threads);
        run_script(with_ours + arguments, true, lines);
        run_script(measured_python(s.python) + " " + script + arguments, false, lines);
      }
    }
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
  Table table({"mask", "pass", "N", "peer", "torch", "median ms", "ours is faster by", "error"});
  bool apart = false;
  for (const json& line : lines) {
    apart = apart || !line["beside_ours"].get<bool>();
    std::vector<std::string> row{
        line["causal"].get<bool>() ? "causal" : "full", line["pass"], std::to_string(line["length"].get<long long>()),
        line["peer"].get<std::string>() + (line["beside_ours"].get<bool>() ? "" : " *"), line["torch"]};
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
  if (apart) std::printf("* in a process of its own with this torch, by turns with the operator's\n");
}

void bench_peers(const Settings& s) {
  parse_numbers("--lengths", s.lengths, 1, 1LL << 30);
  std::optional<AtomicFile> output;  // opened first: a path that cannot be written is no news after an hour
  if (!s.json_file.empty()) output.emplace(s.json_file);
  const int threads = s.threads > 0 ? s.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const std::vector<json> lines = measure(s, threads);
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
      "process with the same threads, and with settings of malloc under which memory that was freed stays with the\n"
      "process, as it does in this program. softmax_unfused is written out; softmax_fused is torch 2's own, for which\n"
      "--python can name an interpreter that has it: where its torch is not the operator's, its peers run in a\n"
      "process of their own, by turns with the operator's. Prints how many times faster the operator is (beside the\n"
      "copy: how near it is); errors are against the definition in float64.");
  app.add_option("--lengths", s->lengths, "Measures sequences of these lengths in tokens, separated by commas.")
      ->capture_default_str();
  app.add_option("--heads", s->heads, "Measures this number of heads.")
      ->check(whole_number(1, 65536))
      ->capture_default_str();
  app.add_option("--dim", s->dim, "Measures heads of this dimension.")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  app.add_option("--batch", s->batch, "Measures batches of this many sequences.")
      ->check(whole_number(1, 1048576))
      ->capture_default_str();
  app.add_option("--dtype", s->dtype, "Measures inputs in this number format.")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->capture_default_str();
  app.add_option("--device", s->device, "Computes on the CPU or on a GPU.")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--threads", s->threads, "Uses this many CPU threads; 0: as many as there are cores.")
      ->check(thread_number())
      ->capture_default_str();
  app.add_option("--seconds", s->seconds, "Each measurement is repeated for this many seconds.")
      ->check(real_number(0.01, 600.0))
      ->capture_default_str();
  app.add_option(
      "--python", s->python,
      "Runs this Python, which may have any torch; by default the first python3 that has the operator's torch.");
  app.add_option("--scripts", s->scripts, "Finds attention.py in this folder; by default beside this program.");
  app.add_option("--fla", s->fla, "Takes flash-linear-attention's kernels from this source tree as peers, on a GPU.");
  app.add_option("--json", s->json_file, "Also writes one JSON object per line to this file.");
  app.callback([s] { bench_peers(*s); });
}

}  // namespace cosformer::cli
