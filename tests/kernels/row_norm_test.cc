// What the lanes of the GPU's norms do, all lanes of a team at once on the host, against the definition.
#include <gtest/gtest.h>

#include "kernels/cuda/norm/row_norm_body.h"
#include "kernels/cuda/norm/row_norm_ragged.h"
#include "kernels/row_norm_case.h"

namespace cosformer::kernels::cuda {
namespace {

using kernels::testing::RowNormCase;
using kernels::testing::RowNormData;
using kernels::testing::RowNormResult;

struct Floats : StoredFloats {
  static constexpr DType kType = DType::kFloat32;
};
struct BFloats {
  using Stored = BFloat16;
  static constexpr DType kType = DType::kBFloat16;
  static float load(BFloat16 x) { return to_float(x); }
  static BFloat16 store(float x) { return to_bfloat16(x); }
};
struct Halves {
  using Stored = Float16;
  static constexpr DType kType = DType::kFloat16;
  static float load(Float16 x) { return to_float(x); }
  static Float16 store(float x) { return to_float16(x); }
};

template <int kTeamLanes>
struct HostTeam {
  static constexpr int kLanes = kTeamLanes, kHeld = kLanes;
  static int lane(int h) { return h; }
  template <int kRows>
  static void sum(const float (&parts)[kRows][kHeld], float (&totals)[kRows]) {
    for (int r = 0; r < kRows; ++r) {
      float all[kHeld];
      std::copy(parts[r], parts[r] + kHeld, all);
      for (int step = kLanes / 2; step > 0; step /= 2) {
        float next[kHeld];
        for (int h = 0; h < kHeld; ++h) next[h] = all[h] + all[h ^ step];
        std::copy(next, next + kHeld, all);
      }
      totals[r] = all[0];
      for (int h = 1; h < kHeld; ++h) ASSERT_EQ(all[h], all[0]);
    }
  }
};

template <class Io>
std::vector<typename Io::Stored> stored(const std::vector<float>& values) {
  std::vector<typename Io::Stored> result;
  for (const float x : values) result.push_back(Io::store(x));
  return result;
}

template <class Io>
std::vector<double> loaded(const std::vector<typename Io::Stored>& values) {
  std::vector<double> result;
  for (const auto x : values) result.push_back(Io::load(x));
  return result;
}

// Tensors of one case, and the sums of its parts as a device has them.
template <class XIo, class YIo>
struct Run {
  Run(const RowNormCase& c, const RowNormData& data, std::int64_t part_count)
      : x(stored<XIo>(data.x)),
        dx(x.size(), XIo::store(std::nanf(""))),
        dy(stored<YIo>(data.dy)),
        y(dy.size(), YIo::store(std::nanf(""))),
        parts(part_count),
        width(static_cast<std::size_t>(c.width)),
        dweight(static_cast<std::size_t>(parts) * width),
        dbias(dweight.size()) {}

  RowNormResult result(bool centered) const {
    std::vector<double> w(width), b(centered ? width : 0);
    for (std::size_t i = 0; i < width; ++i) {
      float weight_sum = 0, bias_sum = 0;
      for (std::size_t at = i; at < dweight.size(); at += width) {
        weight_sum += dweight[at];
        bias_sum += dbias[at];
      }
      w[i] = weight_sum;
      if (centered) b[i] = bias_sum;
    }
    return {loaded<YIo>(y), loaded<XIo>(dx), w, b};
  }

  std::vector<typename XIo::Stored> x, dx;
  std::vector<typename YIo::Stored> dy, y;
  std::int64_t parts;
  std::size_t width;
  std::vector<float> dweight, dbias;  // [parts, width]
};

void expect_within(const RowNormCase& c, const RowNormData& data, const RowNormResult& result) {
  for (const auto& part : kernels::testing::errors_of(c, data, result)) {
    EXPECT_LE(part.error, part.bound) << part.name << "  " << c;
  }
}

template <class XIo, class YIo, int kLanes, int kGroups, int kPack, int kRows>
void check_registers(RowNormCase c, std::mt19937& random) {
  using Layout = RowLayout<HostTeam<kLanes>, kGroups, kPack, kRows>;
  const typename Layout::Team team;
  c.width = Layout::kWidth;
  c.x_dtype = XIo::kType;
  c.y_dtype = YIo::kType;
  const RowNormData data(c, random);
  const RowNormSizes s{c.rows, c.width, c.eps, c.centered};
  Run<XIo, YIo> run(c, data, 3);
  for (std::int64_t first = 0; first < c.rows; first += kRows) {
    normalize_rows<XIo, YIo, Layout>(team, s, run.x.data(), data.weight.data(), c.centered ? data.bias.data() : nullptr,
                                     run.y.data(), first);
  }
  for (std::int64_t part = 0; part < run.parts; ++part) {
    WeightSums<Layout> sums{};
    for (std::int64_t first = part * kRows; first < c.rows; first += run.parts * kRows) {
      differentiate_rows<XIo, YIo, Layout>(team, s, run.x.data(), run.dy.data(), data.weight.data(), run.dx.data(),
                                           first, sums);
    }
    for (int h = 0; h < kLanes; ++h) {
      for (int n = 0; n < Layout::kNumbers; ++n) {
        const auto at = static_cast<std::size_t>(part * c.width + Layout::column(h, n / kPack) + n % kPack);
        run.dweight[at] = sums.weight[h][n];
        run.dbias[at] = sums.bias[h][n];
      }
    }
  }
  expect_within(c, data, run.result(c.centered));
}

template <class XIo, class YIo>
void check_ragged(RowNormCase c, std::mt19937& random) {
  const HostTeam<32> team;
  c.x_dtype = XIo::kType;
  c.y_dtype = YIo::kType;
  const RowNormData data(c, random);
  const RowNormSizes s{c.rows, c.width, c.eps, c.centered};
  Run<XIo, YIo> run(c, data, 3);
  for (std::int64_t row = 0; row < c.rows; ++row) {
    const std::int64_t at = row * c.width, part = row % run.parts * c.width;
    normalize_ragged<XIo, YIo>(team, s, run.x.data() + at, data.weight.data(), c.centered ? data.bias.data() : nullptr,
                               run.y.data() + at);
    differentiate_ragged<XIo, YIo>(team, s, run.x.data() + at, run.dy.data() + at, data.weight.data(),
                                   run.dx.data() + at, run.dweight.data() + part, run.dbias.data() + part);
  }
  expect_within(c, data, run.result(c.centered));
}

TEST(RowNormBody, IsTheDefinition) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (int at = 0; at < 30; ++at) {
    const auto draw = [&](int least, int most) {
      return std::uniform_int_distribution<std::int64_t>(least, most)(random);
    };
    SCOPED_TRACE(::testing::Message() << "seed " << seed << " case " << at);
    RowNormCase c;
    c.rows = draw(1, 60);
    c.centered = draw(0, 1) == 1;
    c.eps = draw(0, 1) == 1 ? 1e-6F : 1e-2F;
    check_registers<Floats, Floats, 8, 1, 4, 4>(c, random);
    check_registers<Floats, BFloats, 16, 1, 4, 4>(c, random);
    check_registers<Floats, BFloats, 32, 1, 4, 4>(c, random);
    check_registers<BFloats, BFloats, 32, 1, 8, 2>(c, random);
    check_registers<Halves, Halves, 32, 3, 4, 1>(c, random);
    check_registers<Floats, Halves, 32, 8, 4, 1>(c, random);
    c.width = draw(1, 300);
    check_ragged<Floats, Floats>(c, random);
    check_ragged<Floats, BFloats>(c, random);
    check_ragged<Halves, Halves>(c, random);
  }
}

// Rows that are not there must not reach the sums, whatever eps is.
TEST(RowNormBody, WorksWithoutEps) {
  std::mt19937 random(5);
  RowNormCase c;
  c.rows = 5;
  c.eps = 0;
  for (const bool centered : {false, true}) {
    c.centered = centered;
    check_registers<Floats, Floats, 32, 1, 4, 4>(c, random);
  }
}

}  // namespace
}  // namespace cosformer::kernels::cuda
