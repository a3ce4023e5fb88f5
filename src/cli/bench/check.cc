// `cosformer check`: the operator against its definition, on random cases, on this machine.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>
#include <torch/cuda.h>

#include "base/error.h"
#include "base/progress.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/terminal/lists.h"
#include "cli/terminal/numbers.h"
#include "kernels/cpu/attention.h"
#include "ops/operator_case.h"

namespace cosformer::cli {
namespace {

using kernels::verify::AttentionCase;
using kernels::verify::PartError;

struct Settings {
  long long cases = 200;
  unsigned long long seed = 1;
  long long max_length = 160;
  std::string dtypes = "float64,float32,bfloat16,float16";
  std::string device = "cpu";
  int threads = 0;
  bool json = false;
};

// The worst of one part of the result in one dtype.
struct Worst {
  long long cases = 0, outside = 0;
  PartError part;
  std::string description;
  double ratio = 0;
};

using Findings = std::map<std::pair<std::string, std::string>, Worst>;

double ratio_of(const PartError& part) {
  if (part.error == 0) return 0;
  return std::isnan(part.error) || part.bound == 0 ? std::numeric_limits<double>::infinity() : part.error / part.bound;
}

void note(Findings& findings, const AttentionCase& c, const std::vector<PartError>& parts) {
  for (const PartError& part : parts) {
    Worst& worst = findings[{kernels::name_of(c.dtype), part.name}];
    ++worst.cases;
    if (!part.within()) {
      ++worst.outside;
      std::fprintf(stderr, "outside its bound: %s, error %s, bound %s: %s\n", part.name,
                   significant(part.error).c_str(), significant(part.bound).c_str(), c.describe().c_str());
    }
    if (worst.cases == 1 || ratio_of(part) > worst.ratio) {
      worst.part = part;
      worst.ratio = ratio_of(part);
      worst.description = c.describe();
    }
  }
}

Findings run(const Settings& s) {
  kernels::verify::CaseLimits limits;
  limits.dtypes = parse_dtypes(s.dtypes);
  limits.max_length = s.max_length;
  const at::Device device(s.device);
  if (device.is_cuda()) {
    limits.dtypes.erase(std::remove(limits.dtypes.begin(), limits.dtypes.end(), kernels::DType::kFloat64),
                        limits.dtypes.end());
  }
  if (limits.dtypes.empty()) throw UserError("--dtypes: float64 exists on the CPU only");
  Findings findings;
  Progress progress("check", s.cases, "cases");
  for (long long at = 0; at < s.cases; ++at) {
    const AttentionCase c =
        kernels::verify::random_case(s.seed * 1'000'003 + static_cast<unsigned long long>(at), limits);
    const auto data = kernels::verify::make_data(c);
    const auto yardstick = kernels::verify::make_yardstick(c, data);
    note(findings, c, kernels::verify::compare(c, yardstick, ops::run_operator(c, data, device)));
    progress.advance();
  }
  return findings;
}

void print_table(const Findings& findings) {
  Table table({"dtype", "result", "cases", "worst error", "its bound", "error/bound", ""});
  for (const auto& [key, worst] : findings) {
    table.add({key.first, key.second, std::to_string(worst.cases), significant(worst.part.error),
               significant(worst.part.bound), significant(worst.ratio), worst.outside == 0 ? "ok" : "OUTSIDE"});
  }
  std::fputs(table.text().c_str(), stdout);
}

void print_json(const Findings& findings) {
  for (const auto& [key, worst] : findings) {
    const nlohmann::ordered_json line{{"check", "attention"},
                                      {"dtype", key.first},
                                      {"result", key.second},
                                      {"cases", worst.cases},
                                      {"outside", worst.outside},
                                      {"max_error", worst.part.error},
                                      {"error_bound", worst.part.bound},
                                      {"worst_case", worst.description}};
    std::printf("%s\n", line.dump().c_str());
  }
}

void check(const Settings& s) {
  if (s.threads > 0) at::set_num_threads(s.threads);
  if (s.device.rfind("cuda", 0) == 0 && !torch::cuda::is_available()) {
    throw UserError("--device cuda: libtorch sees no GPU here; leave it out to check the CPU");
  }
  parse_dtypes(s.dtypes);
  if (!s.json) {
    std::printf("check: %lld cases, seed %llu, lengths to %lld, dtypes %s, device %s, %d threads, instruction set %s\n",
                s.cases, s.seed, s.max_length, s.dtypes.c_str(), s.device.c_str(), at::get_num_threads(),
                kernels::cpu::chosen_kernels().name);
  }
  const Findings findings = run(s);
  long long outside = 0, total = 0;
  for (const auto& [key, worst] : findings) {
    outside += worst.outside;
    total += worst.cases;
  }
  if (s.json) {
    print_json(findings);
  } else {
    print_table(findings);
    std::printf("%lld of %lld results within their bound: twice the error of the naive forms in the same dtype\n",
                total - outside, total);
  }
  if (outside > 0) throw Unsuccessful{};
}

}  // namespace

void add_check(CLI::App& app) {
  const auto s = std::make_shared<Settings>();
  app.footer(
      "Draws random shapes and options, runs the operator forward and backward as a model would, and compares every\n"
      "result with the definition in float64. A result may be at most twice as far off as the worse of two naive\n"
      "forms in the same dtype, or three roundings of the largest term summed. Exit code 1 when one is not.");
  app.add_option("--cases", s->cases, "Draws this many cases.")
      ->check(whole_number(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--seed", s->seed, "The cases follow from this number: the same seed draws the same ones.")
      ->check(seed_number())
      ->capture_default_str();
  app.add_option("--max-length", s->max_length, "Draws sequences of at most this many tokens.")
      ->check(whole_number(1, 4096))
      ->capture_default_str();
  app.add_option("--dtypes", s->dtypes, "Draws inputs in these number formats, separated by commas.")
      ->capture_default_str();
  app.add_option("--device", s->device, "Checks the operator on the CPU or on a GPU.")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--threads", s->threads, "Uses this many CPU threads; 0: as many as there are cores.")
      ->check(thread_number())
      ->capture_default_str();
  app.add_flag("--json", s->json, "Prints one JSON object per line instead of the table.");
  app.callback([s] { check(*s); });
}

}  // namespace cosformer::cli
