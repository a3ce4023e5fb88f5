// Whether what is launched is what the choice says, and what it explains: on random problems, none of which is played.
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "drawn_problem.h"
#include "kernels/cuda/attention.h"
#include "recorded_launches.h"

namespace cosformer::kernels::cuda::testing {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// By their names: what sums, and what sweeps. Scans and what leaves a state are known to their own file alone.
bool sums(const std::string& kernel) {
  return has(kernel, "wide_sum_kernel") || has(kernel, "states_after_kernel") ||
         ((has(kernel, " narrow_kernel") || has(kernel, "::narrow_kernel") || has(kernel, "sweep_kernel")) &&
          has(kernel, "cuda::Mode)1"));
}
bool sweeps(const std::string& kernel) {
  return !kernel.empty() && !sums(kernel);
}
const char* sweep_of(Family family) {
  switch (family) {
    case Family::kNarrow: return "::narrow_";
    case Family::kWide: return "::wide_";
    case Family::kBothSides: return "::both_sides_kernel";
    default: return "::sweep_kernel";
  }
}

struct Counted {
  int sums = 0, sweeps = 0, others = 0, cooperative = 0;
};

Counted count(const std::vector<emulated::RecordedLaunch>& launches) {
  Counted counted;
  for (const emulated::RecordedLaunch& launch : launches) {
    counted.sums += sums(launch.kernel) ? 1 : 0;
    counted.sweeps += sweeps(launch.kernel) ? 1 : 0;
    counted.others += launch.kernel.empty() ? 1 : 0;
    counted.cooperative += launch.cooperative ? 1 : 0;
  }
  return counted;
}

void expect_forward(const Drawn& drawn, const Choice& c, const std::vector<emulated::RecordedLaunch>& launches) {
  const Counted counted = count(launches);
  if (c.family == Family::kDecode) {
    EXPECT_EQ(launches.size(), 1U);
    EXPECT_EQ(counted.others, 1);
    return;
  }
  const bool both_sides = c.family == Family::kBothSides;
  const int times = c.parts.count() * (c.plan.two_sided && !both_sides ? 2 : 1);
  EXPECT_EQ(counted.sweeps, times);
  const bool scans_only = c.plan.running && c.plan.sweep.count == 1 && !both_sides;  // a carried state alone
  const bool in_sweep = c.keys == Launch::kSingle || c.keys == Launch::kCooperative;
  EXPECT_EQ(counted.sums, in_sweep || scans_only ? 0 : times);
  const int exported = drawn.p.state_kv_out != nullptr ? 1 : 0;
  EXPECT_EQ(counted.others, (c.keys == Launch::kSegmentScan ? times : 0) + exported);
  const bool cooperative = c.keys == Launch::kCooperative || c.keys == Launch::kCooperativeScan;
  EXPECT_EQ(counted.cooperative, cooperative ? times : 0);
  for (const emulated::RecordedLaunch& launch : launches) {
    if (!sweeps(launch.kernel)) continue;
    EXPECT_TRUE(has(launch.kernel, sweep_of(c.family))) << launch.kernel;
    EXPECT_EQ(has(launch.kernel, "cuda::Fetch)3"), c.fetch == Fetch::kTma) << launch.kernel;
    EXPECT_EQ(launch.cooperative, c.keys == Launch::kCooperative);
    if (launch.cooperative) {
      const int finer = c.family == Family::kWide ? c.plan.key_sums_per_segment : 1;
      EXPECT_EQ(launch.blocks, drawn.p.sequences * drawn.p.heads * c.plan.sweep.count * finer);
    }
  }
}

void expect_backward(const Choice& c, const std::vector<emulated::RecordedLaunch>& launches) {
  const int times = c.parts.count() * (c.plan.two_sided && c.family != Family::kBothSides ? 2 : 1);
  const int cooperative =
      (c.keys == Launch::kCooperativeScan ? 1 : 0) + (c.queries == Launch::kCooperativeScan ? 1 : 0);
  EXPECT_EQ(count(launches).cooperative, cooperative * times);
  for (const emulated::RecordedLaunch& launch : launches) {
    if (!sweeps(launch.kernel)) continue;
    EXPECT_TRUE(has(launch.kernel, sweep_of(c.family))) << launch.kernel;
    EXPECT_FALSE(has(launch.kernel, "cuda::Fetch)3")) << launch.kernel;
  }
}

TEST(AttentionLaunches, AreWhatTheChoiceSays) {
  constexpr std::uint64_t kSeed = 4'711;
  std::mt19937_64 random(kSeed);
  const Device device = this_device();
  for (int i = 0; i < 2'000; ++i) {
    Drawn drawn = draw(random);
    const Choice c = drawn.choose_on(device);
    if (c.family == Family::kRefused || drawn.p.sequences == 0) continue;
    SCOPED_TRACE("problem " + std::to_string(i) + " of seed " + std::to_string(kSeed) + '\n' +
                 explain(drawn.p, drawn.gradients(), c));
    if (c.key_sum_floats > 0) drawn.p.key_sums = reinterpret_cast<float*>(somewhere);
    emulated::LaunchRecorder recorder;
    // Nothing is played, so that nobody writes there.
    const cudaError_t status = drawn.backward
                                   ? attention_bwd(drawn.p, drawn.g, c, somewhere, c.workspace.bytes, nullptr)
                                   : attention_fwd(drawn.p, c, somewhere, c.workspace.bytes, nullptr);
    EXPECT_EQ(status, cudaSuccess);
    if (drawn.backward) {
      expect_backward(c, recorder.launches);
    } else {
      expect_forward(drawn, c, recorder.launches);
    }
    if (HasFailure()) return;
  }
}

// A driver may refuse what the choice takes for granted.
TEST(AttentionLaunches, GoWithoutTmaWhereTheDriverRefusesATensor) {
  Device device = this_device();
  device.tensor_maps = true;
  if (!device.is_hopper()) GTEST_SKIP() << "a device without TMA";
  Drawn drawn = problem_of({}, true, false, false);
  const Choice c = drawn.choose_on(device);
  ASSERT_EQ(c.fetch, Fetch::kTma);
  drawn.p.v.head_stride += 4;  // whole rows no longer begin at multiples of 16 bytes
  emulated::LaunchRecorder recorder;
  EXPECT_EQ(attention_fwd(drawn.p, c, somewhere, c.workspace.bytes, nullptr), cudaSuccess);
  ASSERT_FALSE(recorder.launches.empty());
  for (const emulated::RecordedLaunch& launch : recorder.launches) EXPECT_FALSE(has(launch.kernel, "cuda::Fetch)3"));
}

}  // namespace
}  // namespace cosformer::kernels::cuda::testing
