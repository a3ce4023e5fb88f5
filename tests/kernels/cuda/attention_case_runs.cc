#include "attention_case_runs.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "device_case.h"
#include "device_run.h"

namespace cosformer::kernels::cuda::testing {

using verify::AttentionCase;
using verify::CaseResult;

std::vector<Prepared> prepare(const std::vector<AttentionCase>& cases) {
  EXPECT_FALSE(cases.empty()) << "nothing to test: COSFORMER_CUDA_LONGEST or another number leaves no case";
  std::vector<Prepared> prepared(cases.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < cases.size(); at = next++) {
        prepared[at] = {cases[at], verify::make_data(cases[at]), {}};
        prepared[at].yardstick = verify::make_yardstick(cases[at], prepared[at].data);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return prepared;
}

std::map<std::string, double>& worst_ratios() {
  static std::map<std::string, double> ratios;
  return ratios;
}

static void expect_within(const Prepared& prepared, const CaseResult& result) {
  for (const verify::PartError& part : verify::compare(prepared.c, prepared.yardstick, result)) {
    EXPECT_TRUE(part.within()) << part.name << " error " << part.error << " bound " << part.bound << "  "
                               << prepared.c.describe();
    double& worst = worst_ratios()[std::string(name_of(prepared.c.dtype)) + ' ' + part.name];
    if (part.bound > 0) worst = std::max(worst, part.error / part.bound);
  }
}

void run_cases(const std::vector<AttentionCase>& cases) {
  for (const Prepared& prepared : prepare(cases)) {
    SCOPED_TRACE(prepared.c.describe());
    try {
      const CaseResult result = run_on_device(prepared.c, prepared.data, Path::kDirect);
      expect_within(prepared, result);
      const CaseResult again = run_on_device(prepared.c, prepared.data, Path::kCaptured);
      for (const verify::NamedPart& part : verify::result_parts()) {
        EXPECT_TRUE(same_bits(result.*part.part, again.*part.part)) << part.name << " differs between two runs";
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

std::vector<AttentionCase> random_cases(int count, std::uint64_t first_seed, const verify::CaseLimits& limits) {
  std::vector<AttentionCase> cases;
  for (int i = 0; i < count; ++i)
    cases.push_back(verify::random_case(first_seed + static_cast<std::uint64_t>(i), limits));
  return cases;
}

}  // namespace cosformer::kernels::cuda::testing
