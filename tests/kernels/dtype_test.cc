// 16-bit conversions against independent arithmetic.
#include "kernels/dtype.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace cosformer::kernels {
namespace {

// The value of a 16-bit pattern from its parts, by the formats' definition.
double value_of(std::uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits >> 15) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(1.0 + std::ldexp(fraction, -fraction_bits), exponent - bias);
}

TEST(Dtype, EveryPatternWidensToItsValueAndBack) {
  for (std::uint32_t pattern = 0; pattern <= 0xffff; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const double half = value_of(bits, 5, 10), brain = value_of(bits, 8, 7);
    if (std::isnan(half)) {
      EXPECT_TRUE(std::isnan(to_float(Float16{bits})));
      EXPECT_TRUE(std::isnan(to_float(to_float16(to_float(Float16{bits})))));
    } else {
      EXPECT_EQ(to_float(Float16{bits}), half) << pattern;
      EXPECT_EQ(to_float16(static_cast<float>(half)).bits, bits) << pattern;
    }
    if (std::isnan(brain)) {
      EXPECT_TRUE(std::isnan(to_float(to_bfloat16(to_float(BFloat16{bits})))));
    } else {
      EXPECT_EQ(to_float(BFloat16{bits}), static_cast<float>(brain)) << pattern;
      EXPECT_EQ(to_bfloat16(static_cast<float>(brain)).bits, bits) << pattern;
    }
  }
}

// Narrowing picks the nearer neighbour, and the even one of two equally near.
TEST(Dtype, NarrowingRoundsToNearestEven) {
  std::mt19937 random(20260);
  for (int round = 0; round < 200'000; ++round) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(x)) continue;
    const auto check = [x](auto narrow, auto widen, double largest) {
      const auto bits = narrow(x).bits;
      const double got = widen(bits);
      if (std::isinf(got)) {
        EXPECT_GT(std::abs(static_cast<double>(x)), largest) << x;
        return;
      }
      const double error = std::abs(got - static_cast<double>(x));
      for (const int step : {-1, 1}) {
        const double other = widen(static_cast<std::uint16_t>(bits + step));
        if (!std::isfinite(other)) continue;
        const double other_error = std::abs(other - static_cast<double>(x));
        EXPECT_LE(error, other_error) << x;
        EXPECT_FALSE(error == other_error && got != other && (bits & 1) != 0) << x;
      }
    };
    check([](float v) { return to_float16(v); }, [](std::uint16_t b) { return value_of(b, 5, 10); }, 65504);
    check([](float v) { return to_bfloat16(v); }, [](std::uint16_t b) { return value_of(b, 8, 7); }, 3.38e38);
  }
}

// The unit roundoff is half the gap above 1.
TEST(Dtype, UnitRoundoffIsHalfTheGapAboveOne) {
  EXPECT_EQ(unit_roundoff(DType::kFloat64), std::numeric_limits<double>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::kFloat32), std::numeric_limits<float>::epsilon() / 2);
  const auto gap_above_one = [](auto one, auto widen) {
    return widen({static_cast<std::uint16_t>(one.bits + 1)}) - 1.0F;
  };
  EXPECT_EQ(unit_roundoff(DType::kBFloat16), gap_above_one(to_bfloat16(1), [](BFloat16 x) { return to_float(x); }) / 2);
  EXPECT_EQ(unit_roundoff(DType::kFloat16), gap_above_one(to_float16(1), [](Float16 x) { return to_float(x); }) / 2);
}

}  // namespace
}  // namespace cosformer::kernels
