// The CUDA kernels against the float64 oracle, on random cases of the whole contract. Needs a GPU to run.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "attention_case_runs.h"
#include "case_limits.h"
#include "device_case.h"
#include "device_run.h"

namespace cosformer::kernels::cuda::testing {
namespace {

using verify::AttentionCase;
using verify::CaseData;
using verify::CaseResult;
using verify::Yardstick;

class AttentionCuda : public ::testing::TestWithParam<DType> {};

TEST_P(AttentionCuda, RandomCases) {
  const int count = environment_number("COSFORMER_CUDA_CASES", 120);
  run_cases(random_cases(count, 1000 * static_cast<std::uint64_t>(GetParam()), {.dtypes = {GetParam()}}));
}

// Long enough that sequences are cut into segments; few features, since the oracle is quadratic.
TEST_P(AttentionCuda, LongSequences) {
  std::vector<AttentionCase> cases;
  for (std::uint64_t seed = 0; cases.size() < static_cast<std::size_t>(environment_number("COSFORMER_CUDA_LONG", 24));
       ++seed) {
    AttentionCase c = verify::random_case(seed + 500'000, {.dtypes = {GetParam()}, .max_length = 1300, .max_dim = 40});
    c.batch = 1;
    c.heads = 1;
    cases.push_back(c);
  }
  run_cases(cases);
}

// Causal sequences in aligned rows that are cut into few and many segments, whole and not: the blocks of a head may run
// in one launch there and wait for each other, so that every run must give the same bits.
TEST_P(AttentionCuda, SequencesInSegments) {
  struct Shape {
    std::int64_t batch, heads, length;
  };
  constexpr Shape kShapes[] = {{1, 1, 512},   {1, 2, 1'600}, {2, 3, 777}, {1, 5, 2'111}, {1, 40, 520}, {1, 1, 4'500},
                               {1, 2, 1'100}, {2, 1, 900},   {1, 8, 700}, {1, 3, 1'500}, {1, 2, 640},  {2, 3, 650}};
  constexpr std::int64_t kDims[][2] = {{64, 64}, {40, 56}, {16, 64}, {128, 128}, {120, 72}};
  std::vector<AttentionCase> cases;
  for (const auto& [batch, heads, length] : kShapes) {
    AttentionCase c;
    c.seed = 600'000 + cases.size();
    c.dtype = GetParam();
    c.batch = batch;
    c.heads = heads;
    c.dim = length > 4'000 ? 16 : kDims[cases.size() % 5][0];
    c.value_dim = length > 4'000 ? 16 : kDims[cases.size() % 5][1];
    c.q_lengths = c.k_lengths = {length};
    c.causal = true;
    c.decay = cases.size() % 2 == 1;
    c.normalizer = cases.size() % 5 == 4 ? Normalizer::kNone : Normalizer::kSum;
    c.scale = c.dtype == DType::kFloat16 ? 0.25 : 1;
    cases.push_back(c);
  }
  std::vector<AttentionCase> repeated = {cases[2], cases[8]};  // narrow and wide heads
  if (GetParam() == DType::kBFloat16) {  // wide heads in more segments than a scan has under way at once
    AttentionCase c = cases[3];
    c.seed = 600'000 + cases.size();
    c.heads = 1;
    c.q_lengths = c.k_lengths = {4'352};
    cases.push_back(c);
  }
  // Tools that follow every access take minutes for the longer ones.
  for (auto* some : {&cases, &repeated}) {
    std::erase_if(*some, [&](const AttentionCase& c) { return c.q_lengths[0] > longest_length(); });
  }
  run_cases(cases);
  for (const AttentionCase& c : repeated) {
    const CaseData data = verify::make_data(c);
    const CaseResult first = run_on_device(c, data, Path::kDirect);
    for (int i = 0; i < environment_number("COSFORMER_CUDA_AGAIN", 50); ++i) {
      EXPECT_TRUE(same_bits(first.out, run_on_device(c, data, Path::kDirect).out)) << "run " << i << c.describe();
    }
  }
}

// Every compiled head dim, with other value dims on either side.
TEST_P(AttentionCuda, HeadDims) {
  std::vector<AttentionCase> cases;
  for (const std::int64_t dim : {16, 32, 48, 64, 96, 128, 192, 256}) {
    for (const bool causal : {true, false}) {
      AttentionCase c;
      c.seed = static_cast<std::uint64_t>(dim);
      c.dtype = GetParam();
      c.heads = 2;
      c.dim = dim;
      c.value_dim = dim == 256 ? 64 : dim;
      c.q_lengths = c.k_lengths = {std::min(150, longest_length())};
      c.causal = causal;
      c.decay = dim % 64 == 0;
      c.scale = c.dtype == DType::kFloat16 ? 0.25 : 1;
      cases.push_back(c);
    }
  }
  run_cases(cases);
}

// Heads of 64 and 128 in aligned rows, which have kernels of their own on some devices, with everything else drawn.
TEST_P(AttentionCuda, WideHeads) {
  constexpr std::int64_t kDims[][2] = {{64, 64}, {128, 128}, {64, 128}, {128, 64}, {40, 56}, {120, 72}};
  std::vector<AttentionCase> cases =
      random_cases(environment_number("COSFORMER_CUDA_WIDE", 72), 700'000, {.dtypes = {GetParam()}, .max_length = 300});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].dim = kDims[i % 6][0];
    cases[i].value_dim = kDims[i % 6][1];
    if (cases[i].layout == verify::Layout::kGapped) cases[i].layout = verify::Layout::kTimeMajor;
  }
  run_cases(cases);
}

// Heads of more than 128 in aligned rows, which some devices take in parts, with everything else drawn.
TEST_P(AttentionCuda, HeadsInParts) {
  constexpr std::int64_t kDims[][2] = {{256, 256}, {192, 64}, {64, 256}, {144, 200}, {128, 192}, {256, 136}};
  const bool has_parts = GetParam() == DType::kBFloat16;
  const int count = environment_number("COSFORMER_CUDA_WIDE", has_parts ? 48 : 6);
  std::vector<AttentionCase> cases = random_cases(
      count, 750'000, {.dtypes = {GetParam()}, .max_length = std::min<std::int64_t>(300, longest_length())});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].dim = kDims[i % 6][0];
    cases[i].value_dim = kDims[i % 6][1];
    if (cases[i].layout == verify::Layout::kGapped) cases[i].layout = verify::Layout::kTimeMajor;
    if (i % 4 != 3) {
      cases[i].feature_map = FeatureMap::kRelu;
      cases[i].carry_state = false;
      cases[i].decay = cases[i].decay && cases[i].causal;
    }
  }
  // Cut into segments, the decay's gradients of many heads with few values, and rows that are not aligned.
  constexpr std::int64_t kMore[][4] = {
      {160, 160, 1, 1'300}, {160, 160, 1, 1'300}, {200, 32, 16, 40}, {256, 200, 2, 60}};
  for (std::size_t i = 0; has_parts && i < std::size(kMore); ++i) {
    AttentionCase c;
    c.seed = 760'000 + i;
    c.dtype = GetParam();
    c.dim = kMore[i][0];
    c.value_dim = kMore[i][1];
    c.heads = kMore[i][2];
    c.q_lengths = c.k_lengths = {kMore[i][3]};
    c.causal = c.decay = i != 1 && i != 3;
    if (i == 3) c.layout = verify::Layout::kGapped;
    if (c.q_lengths[0] <= longest_length()) cases.push_back(c);
  }
  run_cases(cases);
}

struct Lengths {
  std::vector<std::int64_t> q, k;

  std::int64_t longest() const { return std::max(std::ranges::max(q), std::ranges::max(k)); }
};

// Full attention of two heads, packed where there are several sequences; masks and unnormalised sums now and then.
AttentionCase full_case(DType dtype, std::uint64_t seed, const Lengths& lengths, const std::int64_t (&dims)[2],
                        std::size_t number) {
  AttentionCase c;
  c.seed = seed + number;
  c.dtype = dtype;
  c.causal = false;
  c.heads = 2;
  c.dim = dims[0];
  c.value_dim = dims[1];
  c.q_lengths = lengths.q;
  c.k_lengths = lengths.k;
  c.packed = lengths.q.size() > 1;
  c.key_mask = number % 2 == 1;
  c.normalizer = number % 5 == 4 ? Normalizer::kNone : Normalizer::kSum;
  c.scale = c.dtype == DType::kFloat16 ? 0.25 : 1;
  return c;
}

// Full attention without a decay: sequences in one launch and cut ones, none, one and several of them packed together.
TEST_P(AttentionCuda, FullAttention) {
  const Lengths shapes[] = {{{0}, {70}},
                            {{70}, {0}},
                            {{1}, {1}},
                            {{300}, {64}},
                            {{1'100}, {1'600}},
                            {{1'600}, {300}},
                            {{0, 1, 130, 0, 64}, {5, 0, 130, 0, 200}},
                            {{1'200, 3, 700}, {1'100, 900, 700}}};
  constexpr std::int64_t kDims[][2] = {{64, 64}, {40, 56}, {16, 64}};
  std::vector<AttentionCase> cases;
  std::size_t number = 0;
  for (const Lengths& lengths : shapes) {
    for (const auto& dims : kDims) {
      const AttentionCase c = full_case(GetParam(), 900'000, lengths, dims, number++);
      if (lengths.longest() <= longest_length()) cases.push_back(c);
    }
  }
  run_cases(cases);
}

// With a decay: pairs of chunks and parts of them, cut into segments or not, alone and packed; and queries and keys of
// different lengths, which have other kernels.
TEST_P(AttentionCuda, FullAttentionWithDecay) {
  const std::vector<std::int64_t> several = {1'200, 3, 0, 700, 129};
  const Lengths shapes[] = {{{1}, {1}},         {{64}, {64}},       {{128}, {128}},        {{129}, {129}},
                            {{255}, {255}},     {{1'100}, {1'100}}, {{1'600}, {1'600}},    {{300}, {1'000}},
                            {several, several}, {{700}, {130}},     {{40, 300}, {300, 40}}};
  constexpr std::int64_t kDims[][2] = {{64, 64}, {40, 56}, {16, 64}, {64, 24}, {128, 96}};
  // Other numbers have the general sweep, whose segments LongSequences has.
  const int longest = std::min(longest_length(), GetParam() == DType::kBFloat16 ? 1 << 20 : 300);
  std::vector<AttentionCase> cases;
  std::size_t number = 0;
  for (const Lengths& lengths : shapes) {
    for (const auto& dims : kDims) {
      AttentionCase c = full_case(GetParam(), 950'000, lengths, dims, number++);
      c.decay = true;
      c.key_mask = number % 3 == 2;
      if (lengths.longest() <= longest) cases.push_back(c);
    }
  }
  run_cases(cases);
}

// What an absent key holds must not matter, not even where it is not a number.
TEST_P(AttentionCuda, AbsentKeysMayHoldAnything) {
  int poisoned = 0;
  for (std::uint64_t seed = 0; poisoned < environment_number("COSFORMER_CUDA_CASES", 24); ++seed) {
    AttentionCase c = verify::random_case(seed + 800'000, {.dtypes = {GetParam()}, .max_length = 200});
    if (!c.key_mask) continue;
    if (poisoned % 2 == 0) {
      c.dim = c.value_dim = poisoned % 4 == 0 ? 64 : 128;
      c.layout = verify::Layout::kTimeMajor;
    }
    const CaseData clean = verify::make_data(c);
    CaseData dirty = clean;
    for (std::size_t at = 0; at < clean.key_mask.size(); ++at) {
      if (clean.key_mask[at]) continue;
      const auto fill = [&](std::vector<double>& tensor, std::int64_t width) {
        const auto row = static_cast<std::ptrdiff_t>(c.heads * width);
        std::fill_n(tensor.begin() + static_cast<std::ptrdiff_t>(at) * row, row,
                    std::numeric_limits<double>::quiet_NaN());
      };
      fill(dirty.k, c.dim);
      fill(dirty.v, c.value_dim);
    }
    ++poisoned;
    SCOPED_TRACE(c.describe());
    try {
      const CaseResult expected = run_on_device(c, clean, Path::kDirect);
      const CaseResult result = run_on_device(c, dirty, Path::kDirect);
      for (const verify::NamedPart& part : verify::result_parts()) {
        EXPECT_TRUE(same_bits(expected.*part.part, result.*part.part)) << part.name << " changed";
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// With normalised weights of ReLU features, larger queries and keys and their output's gradient change no digit of the
// other results, though the scores, sums and inverse sums within may leave the range of the data's numbers.
TEST_P(AttentionCuda, LargeSumsCostNoDigits) {
  constexpr double kFactor = 256;  // scores and sums are 2^16 times larger
  int compared = 0;
  for (std::uint64_t seed = 0; compared < environment_number("COSFORMER_CUDA_CASES", 60); ++seed) {
    AttentionCase c = verify::random_case(seed + 970'000, {.dtypes = {GetParam()}, .max_length = 400});
    // A state would have to grow as well; a decay lets sums vanish below any eps; the gradients of a key that has no
    // other beside it are nothing but rounding.
    if (c.carry_state || c.decay || std::ranges::count(c.k_lengths, 1) > 0) continue;
    c.feature_map = FeatureMap::kRelu;
    c.normalizer = Normalizer::kSum;
    c.eps = 1e-30;
    c.scale = 0.25;
    if (compared++ % 2 == 0) {
      c.dim = c.value_dim = compared % 4 == 1 ? 64 : 128;
      c.layout = verify::Layout::kTimeMajor;
    }
    const CaseData small = verify::make_data(c);
    CaseData large = small;
    for (std::vector<double>* tensor : {&large.q, &large.k, &large.dout}) {
      for (double& x : *tensor) x *= kFactor;
    }
    SCOPED_TRACE(c.describe());
    try {
      const CaseResult expected = run_on_device(c, small, Path::kDirect);
      const CaseResult result = run_on_device(c, large, Path::kDirect);
      EXPECT_TRUE(same_bits(expected.out, result.out)) << "out changed";
      EXPECT_TRUE(same_bits(expected.dq, result.dq)) << "dq changed";
      EXPECT_TRUE(same_bits(expected.dk, result.dk)) << "dk changed";
      // The smaller ones of these may have lost digits to the smallest step of their number.
      const double step = GetParam() == DType::kFloat16 ? 0x1p-24 : 0;
      ASSERT_EQ(expected.dv.size(), result.dv.size());
      double worst = 0;
      for (std::size_t i = 0; i < expected.dv.size(); ++i) {
        const double difference = std::abs(result.dv[i] / kFactor - expected.dv[i]);
        if (!(difference <= worst)) worst = difference;  // also where it is not a number
      }
      EXPECT_LE(worst, step) << "dv changed";
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

void run_decode_cases(const std::vector<AttentionCase>& cases) {
  for (const Prepared& prepared : prepare(cases)) {
    SCOPED_TRACE(prepared.c.describe());
    try {
      const CaseResult result = run_on_device(prepared.c, prepared.data, Path::kDecode);
      for (const verify::PartError& part : verify::compare(prepared.c, prepared.yardstick, result)) {
        const std::string name = part.name;
        if (name != "out" && name != "state_kv" && name != "state_z") continue;
        EXPECT_TRUE(part.within()) << name << " error " << part.error << " bound " << part.bound;
      }
      const CaseResult again = run_on_device(prepared.c, prepared.data, Path::kDecode);
      EXPECT_TRUE(same_bits(result.out, again.out) && same_bits(result.state_kv, again.state_kv) &&
                  same_bits(result.state_z, again.state_z));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST_P(AttentionCuda, Decode) {
  std::vector<AttentionCase> cases;
  const auto count = static_cast<std::size_t>(environment_number("COSFORMER_CUDA_CASES", 40));
  for (std::uint64_t seed = 0; cases.size() < count; ++seed) {
    AttentionCase c = verify::random_case(seed + 900'000, {.dtypes = {GetParam()}, .max_length = 8});
    if (!c.carry_state || c.q_lengths[0] < 1) continue;
    cases.push_back(c);
  }
  run_decode_cases(cases);
}

// Dims and numbers of tokens one by one, and more heads than a device has blocks at once.
TEST_P(AttentionCuda, DecodeManyHeads) {
  struct Shape {
    std::int64_t batch, heads, dim, value_dim, tokens;
  };
  constexpr Shape kShapes[] = {{3, 2, 128, 128, 1}, {50, 12, 64, 64, 8}, {23, 13, 24, 96, 3}, {2, 3, 256, 256, 8},
                               {9, 31, 5, 12, 1},   {1, 1, 100, 4, 4},   {40, 16, 16, 8, 6},  {2, 2, 130, 200, 2}};
  std::vector<AttentionCase> cases;
  for (const auto& [batch, heads, dim, value_dim, tokens] : kShapes) {
    AttentionCase c;
    c.seed = 950'000 + cases.size();
    c.dtype = GetParam();
    c.batch = batch;
    c.heads = heads;
    c.dim = dim;
    c.value_dim = value_dim;
    c.q_lengths = c.k_lengths = {tokens};
    c.carry_state = true;
    c.position = 123 + 1'000'000'000 * static_cast<std::int64_t>(cases.size() % 2);
    c.horizon = 2'000;  // of both positions the same angle, at which all weights are positive
    c.decay = cases.size() % 2 == 1;
    c.key_mask = cases.size() % 3 == 2;
    cases.push_back(c);
  }
  const auto count = static_cast<std::size_t>(environment_number("COSFORMER_CUDA_CASES", 40));
  cases.resize(std::min(cases.size(), count));
  run_decode_cases(cases);
}

INSTANTIATE_TEST_SUITE_P(DTypes, AttentionCuda, ::testing::Values(DType::kBFloat16, DType::kFloat16, DType::kFloat32),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace cosformer::kernels::cuda::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no CUDA device: nothing to test\n");
    return 77;  // what ctest is told to read as skipped
  }
  const int status = RUN_ALL_TESTS();
  for (const auto& [name, ratio] : cosformer::kernels::cuda::testing::worst_ratios()) {
    std::printf("%-24s error / bound %.3f\n", name.c_str(), ratio);
  }
  return status;
}
