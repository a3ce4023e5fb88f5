// Random short convolutions and what defines them: y[t] = Σ_j w[j] x[t + j − before], channel by channel.
#pragma once

#include <cmath>
#include <cstdint>
#include <ostream>
#include <random>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/reference/head_arrays.h"

namespace cosformer::kernels::testing {

struct ConvolutionCase {
  DType dtype = DType::kFloat32;
  std::int64_t batch = 1, time = 1, channels = 1, width = 1, before = 0;

  // `whole`: channels in packs of eight.
  static ConvolutionCase draw(std::mt19937& random, DType dtype, bool whole) {
    const auto within = [&](std::int64_t least, std::int64_t most) {
      return std::uniform_int_distribution<std::int64_t>(least, most)(random);
    };
    ConvolutionCase c{dtype, within(1, 3), within(1, 300), whole ? 8 * within(1, 3) : within(1, 11), within(1, 19), 0};
    c.before = within(0, c.width - 1);
    return c;
  }
  std::int64_t time_stride() const { return channels + 16; }
  std::int64_t batch_stride() const { return time * time_stride(); }
};

inline std::ostream& operator<<(std::ostream& stream, const ConvolutionCase& c) {
  return stream << name_of(c.dtype) << " batch " << c.batch << " time " << c.time << " channels " << c.channels
                << " width " << c.width << " before " << c.before;
}

// x and dy lie in wider rows, with NaN between them.
struct ConvolutionData {
  std::vector<std::uint8_t> x, dy;
  std::vector<float> weight;

  ConvolutionData(const ConvolutionCase& c, std::mt19937& random) {
    std::normal_distribution<float> normal;
    for (auto* rows : {&x, &dy}) {
      rows->assign(static_cast<std::size_t>(c.batch * c.batch_stride() + 16) * size_of(c.dtype), 0xff);
      each(c, [&](std::int64_t b, std::int64_t t, std::int64_t channel) {
        reference::store_element(c.dtype, rows->data(), index(c, b, t, channel), normal(random));
      });
    }
    weight.resize(static_cast<std::size_t>(c.width * c.channels));
    for (float& w : weight) w = normal(random);
  }

  // The largest error of y [batch, time, channels], over what it may be.
  double error_of(const ConvolutionCase& c, bool reversed, const void* y) const {
    double worst = 0;
    each(c, [&](std::int64_t b, std::int64_t t, std::int64_t channel) {
      Sum sum;
      for (std::int64_t j = 0; j < c.width; ++j) {
        const std::int64_t tap = reversed ? c.width - 1 - j : j;
        if (has(c, t + j - c.before)) {
          sum.add(weight[static_cast<std::size_t>(tap * c.channels + channel)] *
                  at(c, x, b, t + j - c.before, channel));
        }
      }
      const double got = reference::load_element<double>(c.dtype, y, (b * c.time + t) * c.channels + channel);
      const double rounding = c.dtype == DType::kFloat32 ? 0 : unit_roundoff(c.dtype);
      const double half_step = c.dtype == DType::kFloat16 ? 0x1p-25 : 1e-30;  // of the smallest numbers
      worst = larger(worst, std::abs(got - sum.value) / (rounding * std::abs(sum.value) + 1e-6 * sum.size + half_step));
    });
    return worst;
  }

  // The same of the weights' gradient, which comes in `parts` [parts, width, channels].
  double error_of_weights(const ConvolutionCase& c, const std::vector<float>& partial, std::int64_t parts) const {
    double worst = 0;
    for (std::int64_t j = 0; j < c.width; ++j) {
      for (std::int64_t channel = 0; channel < c.channels; ++channel) {
        Sum sum;
        for (std::int64_t b = 0; b < c.batch; ++b) {
          for (std::int64_t t = 0; t < c.time; ++t) {
            if (has(c, t + j - c.before)) sum.add(at(c, dy, b, t, channel) * at(c, x, b, t + j - c.before, channel));
          }
        }
        double got = 0;
        for (std::int64_t part = 0; part < parts; ++part) {
          got += partial[static_cast<std::size_t>((part * c.width + j) * c.channels + channel)];
        }
        worst = larger(worst, std::abs(got - sum.value) / (2e-5 * sum.size + 1e-30));
      }
    }
    return worst;
  }

 private:
  struct Sum {
    double value = 0, size = 0;
    void add(double term) {
      value += term;
      size += std::abs(term);
    }
  };
  // Of what is not a number, too.
  static double larger(double worst, double error) { return error <= worst ? worst : error; }
  static bool has(const ConvolutionCase& c, std::int64_t t) { return t >= 0 && t < c.time; }
  static std::int64_t index(const ConvolutionCase& c, std::int64_t b, std::int64_t t, std::int64_t channel) {
    return b * c.batch_stride() + t * c.time_stride() + channel;
  }
  static double at(const ConvolutionCase& c, const std::vector<std::uint8_t>& rows, std::int64_t b, std::int64_t t,
                   std::int64_t channel) {
    return reference::load_element<double>(c.dtype, rows.data(), index(c, b, t, channel));
  }
  template <class F>
  static void each(const ConvolutionCase& c, F f) {
    for (std::int64_t b = 0; b < c.batch; ++b)
      for (std::int64_t t = 0; t < c.time; ++t)
        for (std::int64_t channel = 0; channel < c.channels; ++channel) f(b, t, channel);
  }
};

}  // namespace cosformer::kernels::testing
