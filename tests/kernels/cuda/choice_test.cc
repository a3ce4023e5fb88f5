// Which kernels serve which problem: a table, and what holds of every choice. Needs neither CUDA nor a GPU.
#include "kernels/cuda/choice.h"

#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/drawn_problem.h"

namespace cosformer::kernels::cuda::testing {
namespace {

struct Row {
  const char* name;
  Drawn drawn;
  Device device;
  Family family;
  Fetch fetch;
  Launch keys, queries;
  int segments = 1, parts = 1;
};

std::vector<Row> table() {
  const Shape narrow, wide{.heads = 8, .dim = 128}, long_narrow{.sequences = 1, .length = 65'536},
      long_wide{.sequences = 1, .heads = 8, .length = 65'536, .dim = 128}, large{.heads = 4, .dim = 256},
      few{.sequences = 1, .heads = 1, .length = 4'096};
  constexpr bool kCausal = true, kFull = false, kDecay = true, kNoDecay = false, kFwd = false, kBwd = true;
  const auto with = [](Drawn drawn, auto change) {
    change(drawn);
    return drawn;
  };
  const auto packed = [](Drawn& d) {
    d.p.cu_seqlens_q = d.p.cu_seqlens_k = reinterpret_cast<const std::int32_t*>(somewhere);
    d.p.total_q = d.p.total_k = d.p.sequences * d.p.q_length;
  };
  const auto masked = [](Drawn& d) { d.p.key_mask = reinterpret_cast<const bool*>(somewhere); };
  const auto carried = [](Drawn& d) {
    d.p.state_kv_in = d.p.state_z_in = reinterpret_cast<const float*>(somewhere);
    d.p.state_kv_out = d.p.state_z_out = reinterpret_cast<float*>(somewhere);
  };
  const auto keeping = [](Drawn& d) { d.p.keep_key_sums = KeepSums::kAlways; };
  using enum Family;
  using enum Launch;
  return {
      {"narrow", problem_of(narrow, kCausal, kNoDecay, kFwd), kH200, kNarrow, Fetch::kTma, kSingle, kSingle},
      {"narrow, gradients", problem_of(narrow, kCausal, kNoDecay, kBwd), kH200, kNarrow, Fetch::kCpAsync, kSingle,
       kSingle},
      {"narrow on an A100", problem_of(narrow, kCausal, kNoDecay, kFwd), kA100, kGeneral, Fetch::kCpAsync, kSingle,
       kSingle},
      {"a build without the Hopper kernels",
       problem_of(narrow, kCausal, kNoDecay, kFwd),
       {.hopper_kernels = false},
       kGeneral,
       Fetch::kCpAsync,
       kSingle,
       kSingle},
      {"a driver without TMA",
       problem_of(narrow, kCausal, kNoDecay, kFwd),
       {.tensor_maps = false},
       kNarrow,
       Fetch::kCpAsync,
       kSingle,
       kSingle},
      {"float16", problem_of({.dtype = DType::kFloat16}, kCausal, kNoDecay, kFwd), kH200, kGeneral, Fetch::kCpAsync,
       kSingle, kSingle},
      {"float32", problem_of({.dtype = DType::kFloat32}, kCausal, kNoDecay, kFwd), kH200, kGeneral, Fetch::kPlain,
       kSingle, kSingle},
      {"float64", problem_of({.dtype = DType::kFloat64}, kCausal, kNoDecay, kFwd), kH200, kRefused, Fetch::kPlain,
       kSingle, kSingle, 1},
      {"elu", with(problem_of(narrow, kCausal, kNoDecay, kFwd), [](Drawn& d) { d.p.feature_map = FeatureMap::kElu1; }),
       kH200, kGeneral, Fetch::kCpAsync, kSingle, kSingle},
      {"rows that are not aligned",
       with(problem_of(narrow, kCausal, kNoDecay, kFwd), [](Drawn& d) { d.p.k.data = kOdd; }), kH200, kGeneral,
       Fetch::kPlain, kSingle, kSingle},
      {"a key mask", with(problem_of(narrow, kCausal, kNoDecay, kFwd), masked), kH200, kNarrow, Fetch::kMaskedCpAsync,
       kSingle, kSingle},
      {"packed", with(problem_of(narrow, kCausal, kNoDecay, kFwd), packed), kH200, kNarrow, Fetch::kCpAsync, kSingle,
       kSingle},
      {"an expanded batch", with(problem_of(narrow, kCausal, kNoDecay, kFwd), [](Drawn& d) { d.p.k.batch_stride = 0; }),
       kH200, kNarrow, Fetch::kCpAsync, kSingle, kSingle},
      {"long and narrow", problem_of(long_narrow, kCausal, kNoDecay, kFwd), kH200, kNarrow, Fetch::kTma, kCooperative,
       kSingle, 16},
      {"long and narrow on few multiprocessors",
       problem_of(long_narrow, kCausal, kNoDecay, kFwd),
       {.multiprocessors = 114},
       kNarrow,
       Fetch::kTma,
       kSegmentScan,
       kSingle,
       16},
      {"long, narrow and packed", with(problem_of(long_narrow, kCausal, kNoDecay, kFwd), packed), kH200, kNarrow,
       Fetch::kCpAsync, kSegmentScan, kSingle, 16},
      {"long and narrow, gradients", problem_of(long_narrow, kCausal, kNoDecay, kBwd), kH200, kNarrow, Fetch::kCpAsync,
       kSegmentScan, kSegmentScan, 16},
      {"the same after a forward pass that has kept its sums",
       with(problem_of(long_narrow, kCausal, kNoDecay, kBwd), keeping), kH200, kNarrow, Fetch::kCpAsync, kSingle,
       kSegmentScan, 16},
      {"one narrow head", problem_of(few, kCausal, kNoDecay, kFwd), kH200, kNarrow, Fetch::kTma, kCooperative, kSingle,
       16},
      {"wide", problem_of(wide, kCausal, kNoDecay, kFwd), kH200, kWide, Fetch::kTma, kSingle, kSingle},
      {"long and wide", problem_of(long_wide, kCausal, kNoDecay, kFwd), kH200, kWide, Fetch::kTma, kCooperative,
       kSingle, 8},
      {"long and wide, masked", with(problem_of(long_wide, kCausal, kNoDecay, kFwd), masked), kH200, kWide,
       Fetch::kMaskedCpAsync, kCooperativeScan, kSingle, 8},
      {"long and wide, gradients", problem_of(long_wide, kCausal, kNoDecay, kBwd), kH200, kWide, Fetch::kCpAsync,
       kCooperativeScan, kCooperativeScan, 8},
      {"long and wide on an A100", problem_of(long_wide, kCausal, kNoDecay, kFwd), kA100, kGeneral, Fetch::kCpAsync,
       kSegmentScan, kSingle, 8},
      {"full", problem_of(narrow, kFull, kNoDecay, kFwd), kH200, kNarrow, Fetch::kTma, kSingle, kSingle},
      {"full, gradients", problem_of(narrow, kFull, kNoDecay, kBwd), kH200, kNarrow, Fetch::kCpAsync, kSumFirst,
       kSingle},
      {"full and long", problem_of(long_narrow, kFull, kNoDecay, kFwd), kH200, kNarrow, Fetch::kTma, kSegmentScan,
       kSingle},
      {"full and wide", problem_of(wide, kFull, kNoDecay, kFwd), kH200, kWide, Fetch::kCpAsync, kSumFirst, kSingle},
      {"full with a decay", problem_of(narrow, kFull, kDecay, kFwd), kH200, kBothSides, Fetch::kCpAsync, kSumFirst,
       kSumFirst},
      {"the same, long", problem_of(long_narrow, kFull, kDecay, kBwd), kH200, kBothSides, Fetch::kCpAsync, kSegmentScan,
       kSegmentScan, 8},
      {"the same of other lengths",
       with(problem_of(narrow, kFull, kDecay, kFwd), [](Drawn& d) { d.p.k_length = 1'000; }), kH200, kGeneral,
       Fetch::kCpAsync, kSingle, kSingle},
      {"the same, wide", problem_of(wide, kFull, kDecay, kFwd), kH200, kWide, Fetch::kCpAsync, kSingle, kSingle},
      {"heads of 256", problem_of(large, kCausal, kNoDecay, kFwd), kH200, kWide, Fetch::kCpAsync, kSingle, kSingle, 1,
       4},
      {"heads of 136, whose second block would be a narrow one",
       problem_of({.heads = 4, .dim = 136}, kCausal, kNoDecay, kFwd), kH200, kGeneral, Fetch::kCpAsync, kSingle,
       kSingle},
      {"heads of 256 on both sides with a decay", problem_of(large, kFull, kDecay, kFwd), kH200, kGeneral,
       Fetch::kCpAsync, kSingle, kSingle},
      {"a state that leaves", with(problem_of(narrow, kCausal, kNoDecay, kFwd), carried), kH200, kGeneral,
       Fetch::kCpAsync, kSegmentScan, kSingle},
      {"eight new tokens on a state", with(problem_of({.length = 8}, kCausal, kNoDecay, kFwd), carried), kH200, kDecode,
       Fetch::kPlain, kSingle, kSingle},
      {"nine new tokens on a state", with(problem_of({.length = 9}, kCausal, kNoDecay, kFwd), carried), kH200, kGeneral,
       Fetch::kCpAsync, kSegmentScan, kSingle},
      {"no place for denominators",
       with(problem_of(narrow, kCausal, kNoDecay, kFwd), [](Drawn& d) { d.p.denominator.data = nullptr; }), kH200,
       kRefused, Fetch::kPlain, kSingle, kSingle},
  };
}

TEST(CudaChoice, Table) {
  for (const Row& row : table()) {
    SCOPED_TRACE(row.name);
    const Choice c = row.drawn.choose_on(row.device);
    SCOPED_TRACE(explain(row.drawn.p, row.drawn.gradients(), c));
    EXPECT_STREQ(name_of(c.family), name_of(row.family));
    EXPECT_STREQ(name_of(c.fetch), name_of(row.fetch));
    EXPECT_STREQ(name_of(c.keys), name_of(row.keys));
    if (row.drawn.backward) {
      EXPECT_STREQ(name_of(c.queries), name_of(row.queries));
    }
    EXPECT_EQ(c.plan.sweep.count, row.segments);
    EXPECT_EQ(c.parts.count(), row.parts);
  }
}

// --- What holds of every choice.

constexpr std::uint64_t kSeed = 20'31;

template <class Check>
void for_random_problems(Check check) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 4'000; ++i) {
    const Drawn drawn = draw(random);
    const Choice c = drawn.choose_on(kH200);
    SCOPED_TRACE("problem " + std::to_string(i) + " of seed " + std::to_string(kSeed) + '\n' +
                 explain(drawn.p, drawn.gradients(), c));
    check(drawn, c);
    if (::testing::Test::HasFailure()) return;
  }
}

// Whoever asks on another machine of the kind is told of the same room, which results must not depend on either.
TEST(CudaChoice, RoomDependsOnTheKindOfDeviceAlone) {
  for_random_problems([](const Drawn& drawn, const Choice& c) {
    const Device other{.multiprocessors = 16, .tensor_maps = false, .narrow_blocks = 1, .narrow_blocks_keeping = 1};
    const Choice smaller = drawn.choose_on(other);
    EXPECT_EQ(c.workspace.bytes, smaller.workspace.bytes);
    EXPECT_EQ(c.key_sum_floats, smaller.key_sum_floats);
    EXPECT_EQ(c.plan.sweep.tokens, smaller.plan.sweep.tokens);
    EXPECT_EQ(c.family, smaller.family);
    EXPECT_NE(smaller.fetch, Fetch::kTma);
  });
}

TEST(CudaChoice, PiecesOfTheWorkspaceLieBesideEachOther) {
  for_random_problems([](const Drawn& drawn, const Choice& c) {
    const Workspace& w = c.workspace;
    EXPECT_EQ(w.bytes % 256, 0U);
    std::vector<std::size_t> begins;
    for (const std::size_t begin :
         {w.row_scalar, w.query_decay, w.key_decay, w.state_decay, w.states_after_extras, w.states_after_segments,
          w.key_slots, w.query_slots, w.cooperative_sums, w.segment_flags}) {
      if (begin == Workspace::kNone) continue;
      EXPECT_EQ(begin % 256, 0U);
      EXPECT_LE(begin, w.bytes);
      begins.push_back(begin);
    }
    if (drawn.p.sequences * drawn.p.q_length == 0) return;  // pieces of no length lie where the next one begins
    const std::set<std::size_t> places(begins.begin(), begins.end());
    // One after the other: of both sides the keys' slots and then the queries'. Never at once: slots and such sums.
    const bool shared =
        w.key_slots != Workspace::kNone && (w.key_slots == w.query_slots || w.key_slots == w.cooperative_sums);
    EXPECT_EQ(places.size(), begins.size() - (shared ? 1 : 0));
    EXPECT_TRUE(begins.empty() || *places.rbegin() < w.bytes);
  });
}

// A segment for each block of a cooperative launch, all of them at once.
TEST(CudaChoice, CooperativeBlocksFit) {
  int cooperative = 0;
  for_random_problems([&](const Drawn& drawn, const Choice& c) {
    if (c.keys != Launch::kCooperative) return;
    ++cooperative;
    EXPECT_EQ(c.fetch, Fetch::kTma);
    EXPECT_FALSE(drawn.backward);
    EXPECT_NE(c.workspace.segment_flags, Workspace::kNone);
    const std::int64_t blocks = drawn.p.sequences * drawn.p.heads * c.plan.sweep.count;
    EXPECT_LE(blocks, kH200.multiprocessors * (c.family == Family::kNarrow ? kH200.narrow_blocks : 1));
  });
  EXPECT_GT(cooperative, 10);
}

TEST(CudaChoice, SumsAreKeptForTheBackwardPassThatFindsThem) {
  int kept = 0;
  for_random_problems([&](const Drawn& drawn, const Choice& c) {
    if (drawn.p.keep_key_sums == KeepSums::kNever) {
      EXPECT_EQ(c.key_sum_floats, 0);
    }
    if (drawn.backward || c.key_sum_floats == 0 || drawn.p.state_kv_out != nullptr) return;
    ++kept;
    Drawn after = drawn;
    after.backward = true;
    after.p.keep_key_sums = KeepSums::kAlways;
    const Choice backward = after.choose_on(kH200);
    if (backward.family == Family::kRefused || backward.family != c.family) return;  // gradients in unaligned rows
    EXPECT_EQ(backward.key_sum_floats, c.key_sum_floats);
    EXPECT_EQ(backward.keys, Launch::kSingle);
  });
  EXPECT_GT(kept, 100);
}

TEST(CudaChoice, EveryKindIsChosenAndSaysWhy) {
  std::set<Family> families;
  std::set<Fetch> fetches;
  std::set<Launch> launches;
  for_random_problems([&](const Drawn& drawn, const Choice& c) {
    families.insert(c.family);
    fetches.insert(c.fetch);
    launches.insert(c.keys);
    const std::string text = explain(drawn.p, drawn.gradients(), c);
    EXPECT_NE(text.find(name_of(c.family)), std::string::npos);
    EXPECT_NE(text.find(c.family_because), std::string::npos);
    if (c.family == Family::kRefused) return;
    EXPECT_NE(text.find(name_of(c.fetch)), std::string::npos);
    EXPECT_NE(text.find(c.fetch_because), std::string::npos);
  });
  EXPECT_EQ(families.size(), 5U);  // nothing that is drawn is refused
  EXPECT_EQ(fetches.size(), 4U);
  EXPECT_EQ(launches.size(), 5U);
}

}  // namespace
}  // namespace cosformer::kernels::cuda::testing
