// What a thread of the GPU's convolution does, item after item on the host, against the sum that defines it.
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/short_convolution_body.h"
#include "kernels/dtype.h"

namespace cosformer::kernels::cuda {
namespace {

struct BFloats {
  using Stored = BFloat16;
  static float load(BFloat16 x) { return to_float(x); }
  static BFloat16 store(float x) { return to_bfloat16(x); }
};

// x and dy lie in wider rows, with poison between them.
template <class Io>
struct Rows {
  Rows(const ConvolutionSizes& s, std::mt19937& random)
      : time_stride(s.channels + 16), batch_stride(s.time * time_stride) {
    std::normal_distribution<float> normal;
    stored.assign(static_cast<std::size_t>(s.batch * batch_stride) + 16, Io::store(std::nanf("")));
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t t = 0; t < s.time; ++t) {
        for (std::int64_t c = 0; c < s.channels; ++c) stored[index(b, t, c)] = Io::store(normal(random));
      }
    }
  }
  std::size_t index(std::int64_t b, std::int64_t t, std::int64_t c) const {
    return static_cast<std::size_t>(b * batch_stride + t * time_stride + c);
  }
  double at(std::int64_t b, std::int64_t t, std::int64_t c) const { return Io::load(stored[index(b, t, c)]); }
  TokenRows<Io> view() const { return {stored.data(), batch_stride, time_stride}; }

  std::int64_t time_stride, batch_stride;
  std::vector<typename Io::Stored> stored;
};

template <class Io, int kLanes>
void check(const ConvolutionSizes& s, std::mt19937& random, double roundoff) {
  const Rows<Io> x(s, random), dy(s, random);
  std::normal_distribution<float> normal;
  std::vector<float> weight(static_cast<std::size_t>(s.width * s.channels));
  for (float& w : weight) w = normal(random);
  for (const bool reversed : {false, true}) {
    std::vector<typename Io::Stored> y(static_cast<std::size_t>(s.batch * s.time * s.channels),
                                       Io::store(std::nanf("")));
    for (std::int64_t item = 0; item < convolution_items(s, kLanes, kTileTokens); ++item) {
      convolve_item<Io, kLanes>(s, x.view(), weight.data(), reversed, y.data(), item);
    }
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t t = 0; t < s.time; ++t) {
        for (std::int64_t c = 0; c < s.channels; ++c) {
          double expected = 0, size = 0;
          for (std::int64_t j = 0; j < s.width; ++j) {
            const std::int64_t from = t + j - s.before;
            if (from < 0 || from >= s.time) continue;
            const double term =
                weight[static_cast<std::size_t>((reversed ? s.width - 1 - j : j) * s.channels + c)] * x.at(b, from, c);
            expected += term;
            size += std::abs(term);
          }
          const double got = Io::load(y[static_cast<std::size_t>((b * s.time + t) * s.channels + c)]);
          ASSERT_LE(std::abs(got - expected), roundoff * std::abs(expected) + 1e-6 * size) << b << ' ' << t << ' ' << c;
        }
      }
    }
  }
  const std::int64_t parts = s.batch * parts_of(s.time, kPartTokens);
  std::vector<float> partial(static_cast<std::size_t>(parts * s.width * s.channels), std::nanf(""));
  for (std::int64_t item = 0; item < convolution_items(s, kLanes, kPartTokens); ++item) {
    weight_gradient_item<Io, kLanes>(s, x.view(), dy.view(), partial.data(), item);
  }
  for (std::int64_t j = 0; j < s.width; ++j) {
    for (std::int64_t c = 0; c < s.channels; ++c) {
      double expected = 0, size = 0, got = 0;
      for (std::int64_t b = 0; b < s.batch; ++b) {
        for (std::int64_t t = 0; t < s.time; ++t) {
          const std::int64_t from = t + j - s.before;
          if (from < 0 || from >= s.time) continue;
          expected += dy.at(b, t, c) * x.at(b, from, c);
          size += std::abs(dy.at(b, t, c) * x.at(b, from, c));
        }
      }
      for (std::int64_t part = 0; part < parts; ++part) {
        got += partial[static_cast<std::size_t>((part * s.width + j) * s.channels + c)];
      }
      ASSERT_LE(std::abs(got - expected), 2e-5 * size) << "tap " << j << " channel " << c;
    }
  }
}

TEST(ShortConvolutionBody, IsTheDefinition) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (int at = 0; at < 40; ++at) {
    const auto draw = [&](int least, int most) {
      return std::uniform_int_distribution<std::int64_t>(least, most)(random);
    };
    ConvolutionSizes s{draw(1, 3), draw(1, 300), 8 * draw(1, 3), draw(1, 19), 0};
    s.before = draw(0, static_cast<int>(s.width) - 1);
    SCOPED_TRACE(testing::Message() << "seed " << seed << " case " << at << ": batch " << s.batch << " time " << s.time
                                    << " channels " << s.channels << " width " << s.width << " before " << s.before);
    check<StoredFloats, 8>(s, random, 0);
    check<BFloats, 8>(s, random, unit_roundoff(DType::kBFloat16));
    s.channels = draw(1, 11);
    check<StoredFloats, 1>(s, random, 0);
  }
}

}  // namespace
}  // namespace cosformer::kernels::cuda
