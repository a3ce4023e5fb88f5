// `cosformer bench`; and `bench attention`: a cross product of lists, one measurement each, a table or JSON lines.
#include <cstdio>
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
#include "cli/bench/attention_bench.h"
#include "cli/bench/attention_choice.h"
#include "cli/bench/bench_decode.h"
#include "cli/bench/bench_peers.h"
#include "cli/bench/bench_train.h"
#include "cli/bench/timing.h"
#include "cli/command.h"
#include "cli/terminal/lists.h"
#include "cli/terminal/numbers.h"
#include "kernels/cpu/attention.h"
#include "ops/plain_errors.h"

namespace cosformer::cli {
namespace {

struct Settings {
  std::string lengths = "1024,4096", heads = "8", dims = "64", batch = "1", dtypes = "float32";
  std::string causal = "both", pass = "fwd,fwd+bwd", impl = "chunked,softmax", decay = "off";
  std::string device = "cpu", json, explain;
  int threads = 0, rounds = 1;
  Effort effort;
};

std::vector<bool> parse_switch(const char* option, const std::string& text, const char* yes, const char* no) {
  if (text == "both") return {true, false};
  std::vector<bool> values;
  for (const std::string& item : parse_names(option, text, {yes, no})) values.push_back(item == yes);
  return values;
}

std::vector<BenchCase> cross_product(const Settings& s, int threads) {
  std::vector<BenchCase> cases;
  const auto impls = parse_names("--impl", s.impl, {"chunked", "quadratic", "recurrent", "softmax"});
  const auto passes = parse_names("--pass", s.pass, {"fwd", "fwd+bwd", "decode"});
  const auto causal = parse_switch("--causal", s.causal, "yes", "no");
  const auto decay = parse_switch("--decay", s.decay, "on", "off");
  for (const auto dtype : parse_dtypes(s.dtypes))
    for (const long long batch : parse_numbers("--batch", s.batch, 1, 1 << 20))
      for (const long long heads : parse_numbers("--heads", s.heads, 1, 1 << 16))
        for (const long long dim : parse_numbers("--dims", s.dims, 1, kernels::kMaxHeadDim))
          for (const long long length : parse_numbers("--lengths", s.lengths, 1, 1LL << 30))
            for (const bool is_causal : causal)
              for (const bool with_decay : decay)
                for (const std::string& pass : passes)
                  for (const std::string& impl : impls) {
                    if (impl == "softmax" && with_decay) continue;
                    if (pass == "decode" && !is_causal) continue;
                    cases.push_back(
                        {impl, pass, s.device, dtype, is_causal, with_decay, batch, heads, length, dim, threads});
                  }
  return cases;
}

nlohmann::ordered_json to_json(const BenchCase& c, const BenchResult& r) {
  nlohmann::ordered_json line{{"bench", "attention"},
                              {"impl", c.impl},
                              {"pass", c.pass},
                              {"device", c.device},
                              {"dtype", kernels::name_of(c.dtype)},
                              {"causal", c.causal},
                              {"decay", c.decay},
                              {"batch", c.batch},
                              {"heads", c.heads},
                              {"length", c.length},
                              {"dim", c.dim},
                              {"threads", c.threads}};
  const bool measured = r.skipped.empty();
  for (const auto& [name, value] : {std::pair{"median_ms", r.median_ms},
                                    {"min_ms", r.min_ms},
                                    {"p90_ms", r.p90_ms},
                                    {"tokens_per_s", r.tokens_per_s},
                                    {"peak_bytes", r.peak_bytes},
                                    {"max_error", r.max_error},
                                    {"error_bound", r.error_bound},
                                    {"roof_fraction", r.roof_fraction},
                                    {"best_fraction", r.best_fraction}}) {
    line[name] = measured ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
  }
  if (!measured) line["skipped"] = r.skipped;
  return line;
}

std::vector<std::string> to_row(const BenchCase& c, const BenchResult& r) {
  std::vector<std::string> row{c.impl,
                               c.pass,
                               kernels::name_of(c.dtype),
                               std::string(c.causal ? "causal" : "full") + (c.decay ? "+decay" : ""),
                               std::to_string(c.batch),
                               std::to_string(c.heads),
                               std::to_string(c.length),
                               std::to_string(c.dim)};
  if (!r.skipped.empty()) {
    row.insert(row.end(), 7, "");
    row.push_back(r.skipped);
    return row;
  }
  row.insert(row.end(), {significant(r.median_ms), spread_of({r.median_ms, r.min_ms, r.p90_ms}),
                         with_commas(static_cast<long long>(r.tokens_per_s)), human_bytes(r.peak_bytes),
                         significant(r.max_error, 2), significant(r.error_bound, 2),
                         significant(100 * r.roof_fraction, 2) + "%", significant(100 * r.best_fraction, 2) + "%"});
  return row;
}

std::string describe(const BenchCase& c) {
  return fmt::format("{} {} {}{}{} B={} H={} N={} D={}", c.impl, c.pass, kernels::name_of(c.dtype),
                     c.causal ? " causal" : " full", c.decay ? "+decay" : "", c.batch, c.heads, c.length, c.dim);
}

void print_roof(const Settings& s, const Roof& roof, int threads) {
  if (roof.copy_gb_per_s > 0) {
    std::printf("roof: a device copy moves %s GB/s (read + written)\n", significant(roof.copy_gb_per_s).c_str());
    return;
  }
  std::printf("roof: an FMA loop on %d threads does %s GFLOP/s in float32", threads,
              significant(roof.gflops_float32).c_str());
  if (roof.gflops_bf16 > 0) std::printf(", %s in bf16 products", significant(roof.gflops_bf16).c_str());
  std::printf("; instruction set %s, device %s\n", kernels::cpu::chosen_kernels().name, s.device.c_str());
}

// What torch cannot do in one cell of the table (a dtype without a kernel, too little memory) leaves the others be.
Measurement prepare_or_explain(const BenchCase& c, const Effort& effort) {
  Measurement m;
  try {
    return prepare(c, effort);
  } catch (const std::exception& error) {
    m.c = c;
    m.result.skipped = ops::first_line_of(error);
  }
  return m;
}

// One case after the other, or all of them in turns, so that whatever else the machine does slows all of them alike.
std::vector<BenchResult> measure_all(const std::vector<BenchCase>& cases, const Settings& s, const Roof& roof) {
  std::vector<BenchResult> results;
  std::vector<Measurement> in_turns;
  Progress progress("bench", static_cast<long long>(cases.size()), "measurements");
  for (const BenchCase& c : cases) {
    progress.note(fmt::format("{} {} N={}", c.impl, c.pass, c.length));
    Measurement m = prepare_or_explain(c, s.effort);
    repeat(m, s.effort.seconds / s.rounds);
    if (s.rounds == 1) {
      results.push_back(finish(m, roof));
    } else {
      in_turns.push_back(std::move(m));
    }
    progress.advance();
  }
  for (int round = 1; round < s.rounds; ++round) {
    for (Measurement& m : in_turns) repeat(m, s.effort.seconds / s.rounds);
  }
  for (const Measurement& m : in_turns) results.push_back(finish(m, roof));
  return results;
}

// The passes of a shape one after the other, each way of computing them once: measures nothing.
void explain_attention(const Settings& s) {
  bool any = false;
  for (const BenchCase& c : cross_product(s, 1)) {
    if (c.impl != "chunked") continue;
    std::printf("%s%s\n%s", any ? "\n" : "", describe(c).c_str(), explain_choice(c, s.explain).c_str());
    any = true;
  }
  if (!any) throw UserError("--explain: only the operator's own form has CUDA kernels; add --impl chunked");
}

void bench_attention(const Settings& s) {
  if (!s.explain.empty()) {
    explain_attention(s);
    return;
  }
  if (s.device == "cuda" && !torch::cuda::is_available()) {
    throw UserError("--device cuda: libtorch sees no GPU here; leave it out to measure the CPU");
  }
  const int threads = s.threads > 0 ? s.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  kernels::cpu::chosen_kernels();  // a wrong COSFORMER_CPU_ISA is refused here, before threads start
  const std::vector<BenchCase> cases = cross_product(s, threads);
  if (cases.empty())
    throw UserError(
        "nothing to measure: softmax has no decay (leave out --decay on or add --impl chunked), and decoding is "
        "causal");
  std::optional<AtomicFile> json;  // opened first: a path that cannot be written is no news after an hour
  if (!s.json.empty()) json.emplace(s.json);
  std::printf(
      "bench attention: lengths %s, heads %s, dims %s, batch %s, dtypes %s, causal %s, decay %s, pass %s, impl %s, "
      "device %s, threads %d, seconds %g, rounds %d, most seconds %g\n",
      s.lengths.c_str(), s.heads.c_str(), s.dims.c_str(), s.batch.c_str(), s.dtypes.c_str(), s.causal.c_str(),
      s.decay.c_str(), s.pass.c_str(), s.impl.c_str(), s.device.c_str(), threads, s.effort.seconds, s.rounds,
      s.effort.most_seconds);
  const Roof roof = measure_roof(s.device, threads);
  print_roof(s, roof, threads);
  Table table({"impl", "pass", "dtype", "mask", "B", "H", "N", "D", "median ms", "spread", "tokens/s", "extra memory",
               "error", "its bound", "of roof", "at best"});
  std::string lines;
  std::string wrong;
  const std::vector<BenchResult> results = measure_all(cases, s, roof);
  for (std::size_t at = 0; at < cases.size(); ++at) {
    const BenchResult& r = results[at];
    if (r.skipped.empty() && !(r.max_error <= r.error_bound)) {
      wrong += fmt::format("\n  {}: {}, its bound is {}", describe(cases[at]), significant(r.max_error, 2),
                           significant(r.error_bound, 2));
    }
    table.add(to_row(cases[at], r));
    lines += to_json(cases[at], r).dump() + '\n';
  }
  std::fputs(table.text().c_str(), stdout);
  if (json.has_value()) {
    json->write(lines.data(), lines.size());
    json->commit();
  }
  if (wrong.empty()) return;
  std::fprintf(stderr, "cosformer: errors outside their bound, so that the time beside them does not count:%s\n",
               wrong.c_str());
  throw Unsuccessful{};
}

}  // namespace

void add_bench(CLI::App& app) {
  app.require_subcommand(1);
  add_bench_decode(
      *app.add_subcommand("decode", "Measures a language model's next token, by how much text is before it."));
  add_bench_peers(*app.add_subcommand("peers", "Measures the operator beside what people would use instead."));
  add_bench_train(*app.add_subcommand("train", "Measures whole training steps, by length, mechanism and direction."));
  CLI::App& attention =
      *app.add_subcommand("attention", "Measures the operator alone, by length, dtype, direction and form.");
  const auto s = std::make_shared<Settings>();
  attention.footer(
      "Measures every combination of the given lists. Errors are those of one head against float64; a speed beside an\n"
      "error outside its bound does not count, and the exit code is 1. The roof is an FMA loop on a CPU and a copy on\n"
      "a GPU; for decode it is a copy of the state on either.");
  attention.add_option("--lengths", s->lengths, "Measures sequences of these lengths in tokens, separated by commas.")
      ->capture_default_str();
  attention.add_option("--heads", s->heads, "Measures these numbers of heads, separated by commas.")
      ->capture_default_str();
  attention.add_option("--dims", s->dims, "Measures heads of these dimensions, 1 to 256, separated by commas.")
      ->capture_default_str();
  attention.add_option("--batch", s->batch, "Measures batches of these numbers of sequences, separated by commas.")
      ->capture_default_str();
  attention
      .add_option("--dtypes", s->dtypes,
                  "Measures inputs in these number formats, separated by commas: float64, float32, bfloat16, float16.")
      ->capture_default_str();
  attention.add_option("--causal", s->causal, "Measures causal attention, full attention, or both: yes, no or both.")
      ->capture_default_str();
  attention
      .add_option("--decay", s->decay,
                  "Measures with a learned decay per head, its gradient included: on, off or both.")
      ->capture_default_str();
  attention
      .add_option("--pass", s->pass,
                  "Measures these passes, separated by commas: fwd, fwd+bwd, or decode, as many new tokens as "
                  "--lengths says on a carried state.")
      ->capture_default_str();
  attention
      .add_option("--impl", s->impl,
                  "Measures these implementations, separated by commas: chunked (the operator), quadratic, recurrent, "
                  "softmax (libtorch's best).")
      ->capture_default_str();
  attention.add_option("--device", s->device, "Computes on the CPU or on a GPU.")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  attention.add_option("--threads", s->threads, "Uses this many CPU threads; 0: as many as there are cores.")
      ->check(thread_number())
      ->capture_default_str();
  attention.add_option("--seconds", s->effort.seconds, "Each measurement is repeated for this many seconds.")
      ->check(real_number(0.01, 600.0))
      ->capture_default_str();
  attention
      .add_option("--rounds", s->rounds,
                  "Divides these seconds among this many rounds through all measurements, so that a drifting machine "
                  "slows all of them.")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  attention
      .add_option("--most-seconds", s->effort.most_seconds,
                  "Leaves out what would take longer than this many seconds a run.")
      ->check(real_number(0.01, 1e6))
      ->capture_default_str();
  attention.add_option("--json", s->json, "Also writes one JSON object per line to this file.");
  attention
      .add_flag("--explain{h200}", s->explain,
                "Measures nothing, and tells which CUDA kernels serve each shape on an H200 and why, with "
                "--explain=a100 or =h100 on one of these; it needs no GPU.")
      ->check(CLI::IsMember(described_gpus()));
  attention.callback([s] { bench_attention(*s); });
}

}  // namespace cosformer::cli
