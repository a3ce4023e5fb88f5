// Random gradients of an embedding, and what defines their sum.
#pragma once

#include <cmath>
#include <ostream>
#include <random>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/reference/head_arrays.h"

namespace cosformer::kernels::testing {

struct EmbeddingCase {
  DType dtype = DType::kFloat32;
  std::int64_t tokens = 0, width = 0, rows = 0;

  // Shapes with one part and many, one window and many, with columns to spare.
  static EmbeddingCase draw(std::mt19937& random, DType dtype, std::int64_t most_rows) {
    const auto within = [&](std::int64_t least, std::int64_t most) {
      return std::uniform_int_distribution<std::int64_t>(least, most)(random);
    };
    EmbeddingCase c;
    c.dtype = dtype;
    c.width = within(1, 130);
    c.rows = within(0, 2) == 0 ? within(1, most_rows) : within(1, 300);
    c.tokens = within(0, 3) == 0 ? within(0, 40) : within(1, 400'000) / (c.width + 10);
    return c;
  }
};

inline std::ostream& operator<<(std::ostream& stream, const EmbeddingCase& c) {
  return stream << "tokens " << c.tokens << " width " << c.width << " rows " << c.rows << " " << name_of(c.dtype);
}

// Ids of which a few lie outside the table, and rows of numbers.
struct EmbeddingData {
  EmbeddingData(const EmbeddingCase& c, std::mt19937& random)
      : ids(static_cast<std::size_t>(c.tokens)),
        dy(static_cast<std::size_t>(c.tokens * c.width) * size_of(c.dtype)),
        sum(static_cast<std::size_t>(c.rows * c.width)),
        size(sum.size()) {
    // Some rows are much more frequent than others, as words are.
    std::geometric_distribution<std::int64_t> near(0.2);
    std::uniform_int_distribution<std::int64_t> anywhere(-1, c.rows);
    std::normal_distribution<float> normal;
    for (std::int64_t token = 0; token < c.tokens; ++token) {
      const std::int64_t id = token % 2 == 0 ? near(random) : anywhere(random);
      ids[static_cast<std::size_t>(token)] = id;
      for (std::int64_t column = 0; column < c.width; ++column) {
        const std::int64_t at = token * c.width + column;
        reference::store_element(c.dtype, dy.data(), at, normal(random));
        if (id < 0 || id >= c.rows) continue;
        const auto value = reference::load_element<double>(c.dtype, dy.data(), at);
        sum[static_cast<std::size_t>(id * c.width + column)] += value;
        size[static_cast<std::size_t>(id * c.width + column)] += std::abs(value);
      }
    }
  }

  // The largest error of partial sums [parts][rows][width], in units of what float32 sums may lose.
  double error_of(const std::vector<float>& partial) const {
    double worst = 0;
    for (std::size_t at = 0; at < sum.size(); ++at) {
      double total = 0;
      for (std::size_t part = at; part < partial.size(); part += sum.size()) total += partial[part];
      const double error = std::abs(total - sum[at]) / (1e-5 * size[at] + 1e-30);
      worst = std::isnan(error) ? error : std::max(worst, error);
      if (std::isnan(worst)) return worst;
    }
    return worst;
  }

  std::vector<std::int64_t> ids;
  std::vector<std::uint8_t> dy;
  std::vector<double> sum, size;
};

}  // namespace cosformer::kernels::testing
