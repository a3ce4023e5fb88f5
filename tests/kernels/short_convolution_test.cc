// What a thread of the GPU's convolution does, item after item on the host, against the sum that defines it.
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/convolution/short_convolution_body.h"
#include "kernels/dtype.h"
#include "short_convolution_case.h"

namespace cosformer::kernels::cuda {
namespace {

using kernels::testing::ConvolutionCase;
using kernels::testing::ConvolutionData;

struct BFloats {
  using Stored = BFloat16;
  static float load(BFloat16 x) { return to_float(x); }
  static BFloat16 store(float x) { return to_bfloat16(x); }
};

template <class Io, int kLanes>
void check(const ConvolutionCase& c, std::mt19937& random) {
  SCOPED_TRACE(::testing::Message() << c << " lanes " << kLanes);
  const ConvolutionData data(c, random);
  const ConvolutionSizes s{c.batch, c.time, c.channels, c.width, c.before};
  const auto rows = [&](const std::vector<std::uint8_t>& bytes) {
    return TokenRows<Io>{reinterpret_cast<const typename Io::Stored*>(bytes.data()), c.batch_stride(), c.time_stride()};
  };
  for (const bool reversed : {false, true}) {
    std::vector<typename Io::Stored> y(static_cast<std::size_t>(s.batch * s.time * s.channels),
                                       Io::store(std::nanf("")));
    for (std::int64_t item = 0; item < convolution_items(s, kLanes, kTileTokens); ++item) {
      convolve_item<Io, kLanes>(s, rows(data.x), data.weight.data(), reversed, y.data(), item);
    }
    EXPECT_LE(data.error_of(c, reversed, y.data()), 1.0) << "reversed " << reversed;
  }
  const std::int64_t parts = s.batch * parts_of(s.time, kPartTokens);
  std::vector<float> partial(static_cast<std::size_t>(parts * s.width * s.channels), std::nanf(""));
  for (std::int64_t item = 0; item < convolution_items(s, kLanes, kPartTokens); ++item) {
    weight_gradient_item<Io, kLanes>(s, rows(data.x), rows(data.dy), partial.data(), item);
  }
  EXPECT_LE(data.error_of_weights(c, partial, parts), 1.0);
}

TEST(ShortConvolutionBody, IsTheDefinition) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (int at = 0; at < 40; ++at) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed << " case " << at);
    check<StoredFloats, 8>(ConvolutionCase::draw(random, DType::kFloat32, true), random);
    check<BFloats, 8>(ConvolutionCase::draw(random, DType::kBFloat16, true), random);
    check<StoredFloats, 1>(ConvolutionCase::draw(random, DType::kFloat32, false), random);
  }
}

}  // namespace
}  // namespace cosformer::kernels::cuda
