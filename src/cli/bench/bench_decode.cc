#include "cli/bench/bench_decode.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/progress.h"
#include "base/table.h"
#include "cli/bench/lm_decode_bench.h"
#include "cli/terminal/gnuplot.h"
#include "cli/terminal/lists.h"
#include "cli/terminal/numbers.h"
#include "kernels/cpu/attention.h"

namespace cosformer::cli {
namespace {

struct Options {
  std::string contexts = "1024,4096,16384,65536,262144,1048576", batches = "1";
  std::string attention = "cosformer,cosformer_plus,softmax", json, plot;
  std::vector<std::string> patterns;
  int threads = 0;
  LmDecodeCase model;
};

struct Measured {
  LmDecodeCase c;
  LmDecodeResult r;
  double tokens_per_second() const { return 1e3 * static_cast<double>(c.batch) / r.token.median_ms; }
};

nlohmann::ordered_json to_json(const Measured& m, int threads) {
  nlohmann::ordered_json json{{"bench", "decode"},
                              {"attention", m.c.attention},
                              {"device", m.c.device},
                              {"dtype", m.c.dtype},
                              {"threads", threads},
                              {"context", m.c.context},
                              {"batch", m.c.batch},
                              {"layers", m.c.layers},
                              {"width", m.c.width},
                              {"heads", m.c.heads},
                              {"vocabulary", m.c.vocabulary},
                              {"parameters", m.r.parameters},
                              {"context_is", m.c.consume ? "consumed" : "set"}};
  if (!m.c.pattern.empty()) json["pattern"] = m.c.pattern;
  if (!m.r.skipped.empty()) {
    json["skipped"] = m.r.skipped;
    return json;
  }
  json["token_ms"] = {{"median", m.r.token.median_ms}, {"min", m.r.token.min_ms}, {"p90", m.r.token.p90_ms}};
  json["limit_ms"] = m.r.limit_ms;
  json["tokens_per_second"] = m.tokens_per_second();
  json["state_bytes"] = m.r.state_bytes;
  json["tokens_measured"] = m.r.tokens;
  if (m.c.consume) json["prompt_seconds"] = m.r.prompt_seconds;
  return json;
}

std::vector<std::string> to_row(const Measured& m) {
  std::vector<std::string> row{m.c.attention, with_commas(m.c.batch), with_commas(m.c.context)};
  if (!m.r.skipped.empty()) {
    row.insert(row.end(), {"-", "-", "-", "-", "-", m.r.skipped});
    return row;
  }
  row.insert(row.end(), {significant(m.r.token.median_ms, 4), spread_of(m.r.token), significant(m.r.limit_ms, 3),
                         significant(m.tokens_per_second(), 4), with_commas(static_cast<long long>(m.r.state_bytes)),
                         m.c.consume ? "consumed" : "set"});
  return row;
}

// One curve for each attention and batch: speed on the left, state on the right.
std::string plot_of(const std::vector<Measured>& all) {
  std::map<std::string, std::string> curves;
  for (const Measured& m : all) {
    if (!m.r.skipped.empty()) continue;
    curves[m.c.attention + ", batch " + std::to_string(m.c.batch)] += std::to_string(m.c.context) + ' ' +
                                                                      std::to_string(m.tokens_per_second()) + ' ' +
                                                                      std::to_string(m.r.state_bytes) + '\n';
  }
  std::string text, speed, state;
  int number = 0;
  for (const auto& [name, points] : curves) {
    const std::string block = "curve" + std::to_string(number++), comma = speed.empty() ? "plot $" : ", $";
    const std::string style =
        fmt::format(" with linespoints pt 7 ps 0.5 lw 2 title {} noenhanced", gnuplot_quoted(name));
    text += gnuplot_data(block, points);
    speed += fmt::format("{}{} using 1:2{}", comma, block, style);
    state += fmt::format("{}{} using 1:3{}", comma, block, style);
  }
  text += "set multiplot layout 1,2\nset grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\nset logscale xy\n";
  text += "set xlabel 'tokens behind'\nset format x '%.0s%c'\nset format y '%.0s%c'\nset key below\n";
  text += fmt::format("set ylabel 'new tokens a second'\n{}\n", speed);
  return fmt::format("{}set ylabel 'bytes of state'\n{}\nunset multiplot\n", text, state);
}

void bench_decode(Options& o) {
  const LmDecodeCase& m = o.model;
  if (m.device == "cuda" && !torch::cuda::is_available()) {
    throw UserError("--device cuda: libtorch sees no GPU here; leave it out to measure the CPU");
  }
  if (m.width % m.heads != 0) throw UserError("--width must be a multiple of --heads");
  if (o.threads == 0) o.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  kernels::cpu::chosen_kernels();  // a wrong COSFORMER_CPU_ISA is refused here
  at::set_num_threads(o.threads);
  std::vector<std::vector<LmDecodeCase>> groups;  // of one attention and batch
  std::vector<LmDecodeCase> models;
  for (const std::string& name : parse_names("--attention", o.attention, {"cosformer", "cosformer_plus", "softmax"})) {
    models.push_back(m);
    models.back().attention = name;
  }
  for (const std::string& pattern : o.patterns) {
    models.push_back(m);
    models.back().pattern = pattern;
    models.back().attention = name_of(models.back());
  }
  for (const LmDecodeCase& model : models) {
    for (const long long batch : parse_numbers("--batch", o.batches, 1, 4096)) {
      groups.emplace_back();
      for (const long long context : parse_numbers("--contexts", o.contexts, 1, 1LL << 32)) {
        LmDecodeCase c = model;
        c.batch = batch;
        c.context = context;
        groups.back().push_back(c);
      }
    }
  }
  std::optional<AtomicFile> json;  // opened first: a path that cannot be written is no news after an hour
  if (!o.json.empty()) json.emplace(o.json);
  if (!o.plot.empty()) require_writable(o.plot + ".svg");
  std::printf(
      "bench decode: contexts %s, batch %s, attention %s, layers %lld, width %lld, heads %lld, %s, device %s, "
      "threads %d, seconds %g\n%s\n",
      o.contexts.c_str(), o.batches.c_str(), o.attention.c_str(), m.layers, m.width, m.heads, m.dtype.c_str(),
      m.device.c_str(), o.threads, m.seconds,
      m.consume ? "the context was consumed: a random text, read in stretches"
                : "the context was set: states and caches of its size hold random numbers, and no text was read");
  std::vector<Measured> all;
  std::string lines;
  {
    Progress progress("bench", static_cast<long long>(groups.size()), "models");
    for (const std::vector<LmDecodeCase>& group : groups) {
      progress.note(fmt::format("{} batch {}", group.front().attention, group.front().batch));
      const std::vector<LmDecodeResult> results = measure_lm_decode(group);
      for (std::size_t at = 0; at < group.size(); ++at) {
        all.push_back({group[at], results[at]});
        lines += to_json(all.back(), o.threads).dump() + '\n';
      }
      progress.advance();
    }
  }
  Table table(
      {"attention", "batch", "context", "ms a token", "spread", "limit", "tokens/s", "bytes of state", "context is"});
  for (const Measured& row : all) table.add(to_row(row));
  std::fputs(table.text().c_str(), stdout);
  if (json.has_value()) {
    json->write(lines.data(), lines.size());
    json->commit();
  }
  const auto is_measured = [](const Measured& row) { return row.r.skipped.empty(); };
  if (o.plot.empty() || std::none_of(all.begin(), all.end(), is_measured)) return;
  draw_with_gnuplot(plot_of(all), o.plot, {1000, 400});
  std::printf("plot: %s.svg and .png\n", o.plot.c_str());
}

}  // namespace

void add_bench_decode(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  LmDecodeCase& m = o->model;
  const auto count = [&app](const char* name, long long& value, long long most, const char* help) {
    app.add_option(name, value, help)->check(whole_number(1, most))->capture_default_str();
  };
  app.add_option("--contexts", o->contexts, "Measures after this many tokens of text, separated by commas.")
      ->capture_default_str();
  app.add_option("--batch", o->batches, "Writes this many texts at once, separated by commas.")->capture_default_str();
  app.add_option("--attention", o->attention,
                 "Measures these mechanisms, separated by commas: cosformer, cosformer_plus, softmax.")
      ->capture_default_str();
  app.add_option("--pattern", o->patterns,
                 "Also measures a hybrid, whose layers have these mechanisms one after the other, repeated, as "
                 "cosformer_plus,softmax; it may be given several times.")
      ->allow_extra_args(false);
  count("--layers", m.layers, 1000, "The model has this many Transformer blocks.");
  count("--width", m.width, 65536, "Each token is a vector of this many numbers between the blocks.");
  count("--heads", m.heads, 1024, "Each attention has this many heads.");
  app.add_flag("--consume", m.consume,
               "Reads a random text of that length; otherwise states are filled with random numbers.");
  app.add_option("--device", m.device, "Computes on the CPU or on a GPU.")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--dtype", m.dtype,
                 "Weights and softmax's cache have this number format; carried states are float32 in any case.")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  app.add_option("--threads", o->threads, "Uses this many CPU threads; 0: as many as there are cores.")
      ->check(thread_number())
      ->capture_default_str();
  app.add_option("--seconds", m.seconds, "Each context is measured for this many seconds.")
      ->check(real_number(0.01, 600.0))
      ->capture_default_str();
  app.add_option("--most-gigabytes", m.most_gigabytes,
                 "Leaves out what needs more than this many gigabytes of caches at once.")
      ->check(real_number(0.001, 1e6))
      ->capture_default_str();
  app.add_option("--json", o->json, "Also writes one JSON object per line to this file.");
  app.add_option("--plot", o->plot,
                 "Draws speed and state by context to this name with .svg and .png; it needs gnuplot.");
  app.footer(
      "A language model of random weights writes one token after another; the contexts take turns of a few tokens.\n"
      "Softmax attention has rotary positions and a cache of all keys and values; the others carry a state whose size\n"
      "does not depend on the context. \"limit\" is the time in which a copy timed in the same run would move what a\n"
      "token cannot do without: every weight and a cache read once, a carried state read and written.");
  app.callback([o] { bench_decode(*o); });
}

}  // namespace cosformer::cli
