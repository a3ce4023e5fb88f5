// `cosformer info`: what this build and this machine offer, or what a run is.
#include <cstdio>
#include <memory>
#include <thread>

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <torch/cuda.h>
#include <torch/version.h>

#include "cli/bench/attention_choice.h"
#include "cli/command.h"
#include "cli/runs/run_info.h"
#include "cli/version.h"
#include "kernels/cpu/attention.h"
#include "nn/mechanisms/attention_config.h"
#include "ops/arguments.h"
#include "ops/device_info.h"

namespace cosformer::cli {
namespace {

nlohmann::ordered_json gather() {
  nlohmann::ordered_json info;
  info["version"] = kVersion;
  info["build"] = std::string(kBuildType) + ", " + kCompiler;
  info["libtorch"] = TORCH_VERSION;
  std::vector<std::string> compiled, runnable;
  for (const kernels::AttentionKernels* set : kernels::cpu::compiled_kernels()) {
    compiled.emplace_back(set->name);
    if (kernels::cpu::cpu_can_run(set->name)) runnable.emplace_back(set->name);
  }
  info["instruction_sets_compiled"] = compiled;
  info["instruction_sets_runnable"] = runnable;
  info["instruction_set_chosen"] = kernels::cpu::chosen_kernels().name;
  info["threads"] = at::get_num_threads();
  info["cores"] = std::thread::hardware_concurrency();
  info["cuda_kernels"] = ops::has_cuda_kernels();
  info["gpus"] = ops::gpu_names();
  const BenchCase example{.impl = "chunked",
                          .pass = "fwd",
                          .device = "cuda",
                          .dtype = kernels::DType::kBFloat16,
                          .heads = 16,
                          .length = 65'536};
  info["cuda_kernels_chosen"] = {{"shape", "1 x 65,536 tokens, 16 heads of 64, bfloat16, causal"}};
  for (const std::string& gpu : described_gpus()) {
    info["cuda_kernels_chosen"][gpu] = chosen_kernels_in_short(example, gpu);
  }
  info["mechanisms"] = nn::attention_names();
  info["feature_maps"] = ops::kFeatureMaps;
  return info;
}

std::string joined(const nlohmann::ordered_json& list) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + item.get<std::string>();
  return text.empty() ? "none" : text;
}

void print(const nlohmann::ordered_json& info) {
  const auto line = [](const char* name, const std::string& value) { std::printf("%-18s %s\n", name, value.c_str()); };
  line("cosformer", fmt::format("{} ({})", info["version"].get<std::string>(), info["build"].get<std::string>()));
  line("libtorch", info["libtorch"]);
  line("instruction sets", joined(info["instruction_sets_compiled"]));
  line("  runnable here", joined(info["instruction_sets_runnable"]));
  line("  chosen", info["instruction_set_chosen"].get<std::string>() + "  (COSFORMER_CPU_ISA overrides)");
  line("threads", fmt::format("{} of {} cores", info["threads"].get<int>(), info["cores"].get<int>()));
  line("CUDA kernels", info["cuda_kernels"].get<bool>() ? "built in" : "not built in");
  line("GPUs", joined(info["gpus"]));
  line("  an H200 would run", info["cuda_kernels_chosen"]["h200"].get<std::string>());
  line("", fmt::format("for {}; cosformer bench attention --explain tells of other shapes",
                       info["cuda_kernels_chosen"]["shape"].get<std::string>()));
  line("mechanisms", joined(info["mechanisms"]));
  line("feature maps", joined(info["feature_maps"]));
}

}  // namespace

void add_info(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  const auto run = std::make_shared<std::string>();
  app.add_option("RUN", *run, "The folder of a run, or its bundle: tells its settings, tensors and result instead.");
  app.add_flag("--json", *json, "Prints one JSON object instead.");
  app.callback([json, run] {
    if (!run->empty()) {
      print_run(*run, *json);
      return;
    }
    const nlohmann::ordered_json info = gather();
    if (*json) {
      std::printf("%s\n", info.dump(2).c_str());
    } else {
      print(info);
    }
  });
}

}  // namespace cosformer::cli
