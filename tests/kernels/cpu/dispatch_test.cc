// Which instruction set is chosen, and what the override says when it cannot be had.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cpu/attention.h"

namespace cosformer::kernels::cpu {
namespace {

// Chooses in a process of its own, since a process chooses once: exits with 0 when `wanted` was chosen, with 1 when
// another was, and with 3 and the message on an error.
[[noreturn]] void choose_and_exit(const char* wanted) {
  setenv("COSFORMER_CPU_ISA", wanted, 1);
  try {
    std::exit(std::string(chosen_kernels().name) == wanted ? 0 : 1);
  } catch (const std::runtime_error& error) {
    std::fputs(error.what(), stderr);
    std::exit(3);
  }
}

TEST(CpuDispatchDeathTest, OverrideChoosesEverySetThatRuns) {
  ASSERT_FALSE(compiled_kernels().empty());
  for (const AttentionKernels* kernels : compiled_kernels()) {
    if (!cpu_can_run(kernels->name)) {
      EXPECT_EXIT(choose_and_exit(kernels->name), testing::ExitedWithCode(3), "this CPU lacks");
    } else {
      EXPECT_EXIT(choose_and_exit(kernels->name), testing::ExitedWithCode(0), "");
    }
  }
}

TEST(CpuDispatchDeathTest, UnknownNameIsAnErrorThatListsTheKnownOnes) {
  EXPECT_EXIT(choose_and_exit("avx1024"), testing::ExitedWithCode(3),
              std::string("COSFORMER_CPU_ISA=avx1024: no such instruction set.*") + compiled_kernels()[0]->name);
}

TEST(CpuDispatch, SomeSetRunsAndUnknownOnesDoNot) {
  EXPECT_TRUE(cpu_can_run(compiled_kernels()[0]->name));
  EXPECT_TRUE(cpu_can_run(chosen_kernels().name));
  EXPECT_FALSE(cpu_can_run("avx1024"));
  EXPECT_FALSE(cpu_can_run(""));
}

TEST(CpuDispatch, PeakIsMeasured) {
  EXPECT_GT(measure_fma_gflops(0.01), 0.1);
}

}  // namespace
}  // namespace cosformer::kernels::cpu
