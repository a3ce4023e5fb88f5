// Random embeddings and their gradients, and what defines them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <random>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/reference/head_arrays.h"

namespace cosformer::kernels::testing {

struct EmbeddingCase {
  DType dtype = DType::kFloat32;
  std::int64_t tokens = 0, width = 0, rows = 0;

  // Few tokens and many, few rows and many, with columns to spare.
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
        size(sum.size()),
        order(ids.size()),
        sorted(ids.size()) {
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
    std::iota(order.begin(), order.end(), 0);
    const auto id_of = [&](std::int64_t token) { return ids[static_cast<std::size_t>(token)]; };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return id_of(a) < id_of(b); });
    std::transform(order.begin(), order.end(), sorted.begin(),
                   [&](auto token) { return static_cast<int>(id_of(token)); });
  }

  // The largest error of the gradient [rows, width], in units of what float32 sums and the stored type may lose.
  double error_of(const EmbeddingCase& c, const std::vector<std::uint8_t>& gradient) const {
    const double rounding = c.dtype == DType::kFloat32 ? 0 : c.dtype == DType::kBFloat16 ? 0.5 / 128 : 0.5 / 1024;
    double worst = 0;
    for (std::size_t at = 0; at < sum.size(); ++at) {
      const auto got = reference::load_element<double>(c.dtype, gradient.data(), static_cast<std::int64_t>(at));
      const double error = std::abs(got - sum[at]) / (1e-5 * size[at] + rounding * std::abs(sum[at]) + 1e-7);
      if (std::isnan(error)) return error;
      worst = std::max(worst, error);
    }
    return worst;
  }

  std::vector<std::int64_t> ids;
  std::vector<std::uint8_t> dy;
  std::vector<double> sum, size;
  std::vector<std::int64_t> order;  // tokens by their ids
  std::vector<std::int32_t> sorted;
};

// A random table, and dy + table[ids] as it must be stored; NaN for ids outside the table.
struct EmbeddedRows {
  EmbeddedRows(const EmbeddingCase& c, const EmbeddingData& data, bool onto, std::mt19937& random)
      : table(static_cast<std::size_t>(c.rows * c.width) * size_of(c.dtype)), expected(data.dy.size()) {
    std::normal_distribution<float> normal;
    for (std::int64_t at = 0; at < c.rows * c.width; ++at) {
      reference::store_element(c.dtype, table.data(), at, normal(random));
    }
    for (std::int64_t at = 0; at < c.tokens * c.width; ++at) {
      const std::int64_t id = data.ids[static_cast<std::size_t>(at / c.width)];
      const bool known = id >= 0 && id < c.rows;
      const float row =
          known ? reference::load_element<float>(c.dtype, table.data(), id * c.width + at % c.width) : std::nanf("");
      const float x = onto ? reference::load_element<float>(c.dtype, data.dy.data(), at) : 0.0F;
      reference::store_element(c.dtype, expected.data(), at, x + row);
    }
  }

  // How many stored numbers differ from what they must be.
  std::int64_t mistakes_in(const EmbeddingCase& c, const std::vector<std::uint8_t>& y) const {
    std::int64_t mistakes = y.size() == expected.size() ? 0 : 1;
    for (std::int64_t at = 0; y.size() == expected.size() && at < c.tokens * c.width; ++at) {
      const auto got = reference::load_element<float>(c.dtype, y.data(), at);
      const auto must = reference::load_element<float>(c.dtype, expected.data(), at);
      if (std::isnan(must) ? !std::isnan(got) : got != must) ++mistakes;
    }
    return mistakes;
  }

  std::vector<std::uint8_t> table, expected;
};

}  // namespace cosformer::kernels::testing
