#include "cli/bench/bench_train.h"

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <torch/cuda.h>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/progress.h"
#include "base/table.h"
#include "cli/terminal/lists.h"
#include "cli/terminal/numbers.h"
#include "kernels/cpu/attention.h"
#include "models/config.h"
#include "models/layer_pattern.h"
#include "nn/mechanisms/attention_config.h"
#include "ops/plain_errors.h"

namespace cosformer::cli {
namespace {

struct Options {
  std::string lengths = "1024,4096", attention = "cosformer,cosformer_plus,softmax", causal = "both";
  std::vector<std::string> patterns;
  TrainCase model;
  std::string precision = "fp32", json, exchange;
  TrainEffort effort;
  bool with_peers = false;
  TrainPeersOptions peers;
};

std::vector<TrainCase> cross_product(const Options& o) {
  std::vector<TrainCase> cases;
  const auto names =
      o.attention == "all" ? nn::attention_names() : parse_names("--attention", o.attention, nn::attention_names());
  const auto masks =
      o.causal == "both" ? std::vector<std::string>{"no", "yes"} : parse_names("--causal", o.causal, {"no", "yes"});
  for (const long long length : parse_numbers("--lengths", o.lengths, 1, 1LL << 30)) {
    for (const std::string& mask : masks) {
      TrainCase c = o.model;
      c.causal = mask == "yes";
      c.length = length;
      c.bfloat16 = o.precision == "bf16";
      for (const std::string& name : names) {
        c.attention = name;
        cases.push_back(c);
      }
      for (const std::string& pattern : o.patterns) {
        c.pattern = pattern;
        c.attention = name_of(c);
        cases.push_back(c);
      }
    }
  }
  return cases;
}

nlohmann::ordered_json to_json(const TrainCase& c, const TrainMeasurement& m) {
  nlohmann::ordered_json line{{"bench", "train"},
                              {"attention", c.attention},
                              {"device", c.device},
                              {"precision", c.bfloat16 ? "bf16" : "fp32"},
                              {"causal", c.causal},
                              {"length", c.length},
                              {"batch", c.batch},
                              {"width", c.width},
                              {"layers", c.layers},
                              {"heads", c.heads},
                              {"feed_forward", c.feed_forward},
                              {"dropout", c.dropout},
                              {"threads", c.threads}};
  if (!c.pattern.empty()) line["pattern"] = c.pattern;
  const bool measured = m.skipped.empty();
  line["parameters"] = measured ? nlohmann::ordered_json(m.parameters) : nlohmann::ordered_json(nullptr);
  for (const auto& [name, value] : {std::pair{"median_ms", m.step.median_ms},
                                    {"min_ms", m.step.min_ms},
                                    {"p90_ms", m.step.p90_ms},
                                    {"steps_per_s", 1e3 / m.step.median_ms},
                                    {"inference_median_ms", m.inference.median_ms},
                                    {"inference_steps_per_s", 1e3 / m.inference.median_ms},
                                    {"tokens_per_s", m.tokens_per_s},
                                    {"peak_bytes", m.peak_bytes},
                                    {"resident_bytes", m.resident_bytes}}) {
    line[name] = measured ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
  }
  line["losses"] = m.losses;
  if (!measured) line["skipped"] = m.skipped;
  return line;
}

std::vector<std::string> to_row(const TrainCase& c, const TrainMeasurement& m, double softmax_ms) {
  std::vector<std::string> row{std::to_string(c.length), c.causal ? "causal" : "full", c.attention};
  if (!m.skipped.empty()) {
    row.insert(row.end(), 7, "");
    row.push_back(m.skipped);
    return row;
  }
  const bool beside_softmax = softmax_ms > 0 && c.attention != "softmax";
  row.insert(row.end(), {significant(m.step.median_ms), spread_of(m.step), significant(1e3 / m.step.median_ms),
                         significant(1e3 / m.inference.median_ms), with_commas(static_cast<long long>(m.tokens_per_s)),
                         human_bytes(m.peak_bytes), with_commas(m.parameters),
                         beside_softmax ? significant(softmax_ms / m.step.median_ms) + "×" : ""});
  return row;
}

// What cannot be done in one cell of the table (too little memory, a mechanism that has no causal form) leaves the
// others be.
TrainMeasurement measure_or_explain(const TrainCase& c, const Options& o) {
  try {
    return measure_training(c, o.effort, o.exchange);
  } catch (const std::exception& error) {
    TrainMeasurement m;
    m.skipped = ops::first_line_of(error);
    return m;
  }
}

std::string measure_all(const std::vector<TrainCase>& cases, const Options& o) {
  std::vector<TrainMeasurement> results;
  std::map<std::pair<long long, bool>, double> softmax_ms;
  std::string lines;
  {
    Progress progress("bench", static_cast<long long>(cases.size()), "measurements");
    for (const TrainCase& c : cases) {
      progress.note(fmt::format("{}{} N={}", c.attention, c.causal ? " causal" : " full", c.length));
      results.push_back(measure_or_explain(c, o));
      if (c.attention == "softmax") softmax_ms[{c.length, c.causal}] = results.back().step.median_ms;
      lines += to_json(c, results.back()).dump() + '\n';
      progress.advance();
    }
  }
  Table table({"N", "mask", "attention", "step ms", "spread", "steps/s", "inference/s", "tokens/s", "memory",
               "parameters", "faster than softmax by"});
  for (std::size_t at = 0; at < cases.size(); ++at) {
    table.add(to_row(cases[at], results[at], softmax_ms[{cases[at].length, cases[at].causal}]));
  }
  std::fputs(table.text().c_str(), stdout);
  return lines;
}

void bench_train(Options& o) {
  if (o.model.device == "cuda" && !torch::cuda::is_available()) {
    throw UserError("--device cuda: libtorch sees no GPU here; leave it out to measure the CPU");
  }
  if (o.model.width % o.model.heads != 0) {
    throw UserError(fmt::format("--width must be a multiple of --heads; got {} and {}", o.model.width, o.model.heads));
  }
  if (o.model.threads == 0) o.model.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  {
    models::ModelConfig trial;  // a setting that does not exist is no reason to skip a case
    Settings settings;
    models::add_settings(settings, trial, false);
    for (const std::string& assignment : o.model.assignments) settings.assign(assignment);
    trial.layers = o.model.layers;
    for (const std::string& pattern : o.patterns) {
      trial.attention = {};
      trial.pattern = split_list(pattern);
      Settings unset;
      models::add_settings(unset, trial, false);
      models::apply_preset(trial, unset);
      models::require_attention_possible(trial);
    }
  }
  kernels::cpu::chosen_kernels();  // a wrong COSFORMER_CPU_ISA is refused here, before threads start
  if (o.with_peers) o.attention = "cosformer,softmax";
  const std::vector<TrainCase> cases = cross_product(o);
  std::optional<AtomicFile> json;  // opened first: a path that cannot be written is no news after an hour
  if (!o.json.empty()) json.emplace(o.json);
  const TrainCase& m = o.model;
  std::printf(
      "bench train%s: lengths %s, attention %s, causal %s, batch %lld, width %lld, layers %lld, heads %lld, "
      "feed-forward %lld, dropout %g, precision %s, device %s, threads %d, seconds %g, most seconds %g\n",
      o.with_peers ? " with peers" : "", o.lengths.c_str(), o.attention.c_str(), o.causal.c_str(), m.batch, m.width,
      m.layers, m.heads, m.feed_forward, m.dropout, o.precision.c_str(), m.device.c_str(), m.threads, o.effort.seconds,
      o.effort.most_seconds);
  const std::string lines = o.with_peers ? bench_train_peers(cases, o.effort, o.peers) : measure_all(cases, o);
  if (json.has_value()) {
    json->write(lines.data(), lines.size());
    json->commit();
  }
}

}  // namespace

void add_bench_train(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  TrainCase& m = o->model;
  m.threads = 0;
  app.footer(
      "A classifier of random tokens, trained as `cosformer train` does it: forward, backward, clipping, AdamW.\n"
      "Memory is all that torch holds at most: parameters, gradients, the optimiser's state, activations. With\n"
      "--peers the same model written in torch (bench/peers/train.py) takes the same steps from the same weights on\n"
      "the same threads; the table then has ratios, and memory is what the processes take from the system.");
  const auto count = [&app](const char* name, long long& value, long long most, const char* help) {
    app.add_option(name, value, help)->check(whole_number(1, most))->capture_default_str();
  };
  app.add_option("--lengths", o->lengths, "Measures sequences of these lengths in tokens, separated by commas.")
      ->capture_default_str();
  app.add_option("--attention", o->attention, "Measures these mechanisms, separated by commas, or all.")
      ->capture_default_str();
  CLI::Option* patterns =
      app.add_option("--pattern", o->patterns,
                     "Also measures a hybrid, whose layers have these mechanisms one after the other, repeated, as "
                     "cosformer_plus,softmax; it may be given several times.")
          ->allow_extra_args(false);
  app.add_option("--set", m.assignments,
                 "Sets a setting of the model, KEY=VALUE, such as attention.feature_map=identity; it may be given "
                 "several times.")
      ->allow_extra_args(false);
  app.add_option("--causal", o->causal, "Measures causal models, bidirectional ones, or both: yes, no or both.")
      ->capture_default_str();
  count("--batch", m.batch, 1LL << 20, "A step has this many sequences.");
  count("--width", m.width, 65536, "Each token is a vector of this many numbers between the blocks.");
  count("--layers", m.layers, 1000, "The model has this many Transformer blocks.");
  count("--heads", m.heads, 1024, "Each attention has this many heads.");
  count("--feed-forward", m.feed_forward, 1LL << 20,
        "The feed-forward part of a block has this many numbers between its two layers.");
  app.add_option("--dropout", m.dropout, "This share of embeddings and of each part's output is zeroed.")
      ->check(real_number(0.0, 0.999))
      ->capture_default_str();
  app.add_option("--precision", o->precision, "Computes in fp32, or in bf16 through autocast.")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  app.add_option("--device", m.device, "Computes on the CPU or on a GPU.")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--threads", m.threads, "Uses this many CPU threads; 0: as many as there are cores.")
      ->check(thread_number())
      ->capture_default_str();
  app.add_option("--seconds", o->effort.seconds, "Steps are repeated for this many seconds.")
      ->check(real_number(0.01, 600.0))
      ->capture_default_str();
  app.add_option("--most-seconds", o->effort.most_seconds,
                 "Leaves out what takes longer than this many seconds a step.")
      ->check(real_number(0.01, 1e6))
      ->capture_default_str();
  CLI::Option* peers =
      app.add_flag("--peers", o->with_peers, "Also measures the same model written in torch, by turns.")
          ->excludes(patterns);
  app.add_option("--rounds", o->peers.rounds, "With --peers: ours and the peers take turns this many times.")
      ->check(whole_number(1, 1000))
      ->capture_default_str()
      ->needs(peers);
  app.add_option("--python", o->peers.python,
                 "With --peers: runs this Python; by default the first python3 that has torch.")
      ->needs(peers);
  app.add_option("--scripts", o->peers.scripts,
                 "With --peers: finds train.py in this folder; by default beside this program.")
      ->needs(peers);
  app.add_option("--json", o->json, "Also writes one JSON object per line to this file.");
  app.add_option("--exchange", o->exchange)->group("");  // for --peers: where the weights and the batch go
  app.callback([o] { bench_train(*o); });
}

}  // namespace cosformer::cli
