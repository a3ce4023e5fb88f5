// LayerNorm and RMSNorm of random rows by their definition, in double and, as a yardstick, naively in float.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "kernels/dtype.h"

namespace cosformer::kernels::testing {

struct RowNormCase {
  DType x_dtype = DType::kFloat32, y_dtype = DType::kFloat32;
  std::int64_t rows = 1, width = 1;
  bool centered = true;
  float eps = 1e-6F;

  std::size_t count() const { return static_cast<std::size_t>(rows * width); }
};

inline std::ostream& operator<<(std::ostream& to, const RowNormCase& c) {
  return to << (c.centered ? "LayerNorm" : "RMSNorm") << " rows " << c.rows << " width " << c.width << ' '
            << name_of(c.x_dtype) << " to " << name_of(c.y_dtype) << " eps " << c.eps;
}

inline float rounded(DType dtype, float x) {
  if (dtype == DType::kBFloat16) return to_float(to_bfloat16(x));
  if (dtype == DType::kFloat16) return to_float(to_float16(x));
  return x;
}

// Numbers of x and dy as their types hold them.
struct RowNormData {
  RowNormData(const RowNormCase& c, std::mt19937& random)
      : x(c.count()), dy(c.count()), weight(static_cast<std::size_t>(c.width)), bias(weight.size()) {
    std::normal_distribution<float> normal;
    const float far = c.x_dtype == DType::kFloat32 ? 100.0F : 4.0F;  // rows far from zero lose digits to bad sums
    for (std::int64_t r = 0; r < c.rows; ++r) {
      const float offset = r % 3 == 0 ? far : 0.0F, scale = std::exp(0.5F * normal(random));
      for (std::int64_t i = r * c.width; i < (r + 1) * c.width; ++i) {
        x[static_cast<std::size_t>(i)] = rounded(c.x_dtype, offset + scale * normal(random));
        dy[static_cast<std::size_t>(i)] = rounded(c.y_dtype, normal(random));
      }
    }
    for (float& w : weight) w = 1.0F + 0.5F * normal(random);
    for (float& b : bias) b = normal(random);
  }
  std::vector<float> x, dy, weight, bias;
};

struct RowNormResult {
  std::vector<double> y, dx, dweight, dbias;
};

// The order in which a sum takes the columns of a row, and the rows.
struct SumOrder {
  explicit SumOrder(const RowNormCase& c)
      : columns(static_cast<std::size_t>(c.width)), rows(static_cast<std::size_t>(c.rows)) {
    std::iota(columns.begin(), columns.end(), std::size_t{0});
    std::iota(rows.begin(), rows.end(), std::size_t{0});
  }
  std::vector<std::size_t> columns, rows;
};

// By the definition, each sum one number after the other. `terms`, where asked for, gets the size of the largest term
// of each number.
template <class Real>
RowNormResult by_definition(const RowNormCase& c, const RowNormData& data, const SumOrder& order,
                            RowNormResult* terms = nullptr) {
  const auto count = c.count(), width = static_cast<std::size_t>(c.width);
  RowNormResult sized{std::vector<double>(count), std::vector<double>(count), std::vector<double>(width),
                      std::vector<double>(c.centered ? width : 0)};
  if (terms != nullptr) *terms = sized;
  RowNormResult result = sized;
  std::vector<Real> dweight(width), dbias(width), unit(width), slope(width);
  const Real n = static_cast<Real>(c.width);
  for (const std::size_t row : order.rows) {
    const std::size_t first = row * width;
    Real mean = 0, squares = 0, level = 0, along = 0;
    if (c.centered) {
      for (const std::size_t i : order.columns) mean += data.x[first + i];
      mean /= n;
    }
    for (const std::size_t i : order.columns) squares += (data.x[first + i] - mean) * (data.x[first + i] - mean);
    const Real inverse = 1 / std::sqrt(squares / n + static_cast<Real>(c.eps));
    for (const std::size_t i : order.columns) {
      const Real dy = data.dy[first + i], w = data.weight[i];
      unit[i] = (data.x[first + i] - mean) * inverse;
      slope[i] = dy * w;
      result.y[first + i] = static_cast<double>(unit[i] * w + (c.centered ? static_cast<Real>(data.bias[i]) : 0));
      level += slope[i];
      along += slope[i] * unit[i];
      dweight[i] += dy * unit[i];
      dbias[i] += dy;
    }
    level = c.centered ? level / n : 0;
    along /= n;
    for (std::size_t i = 0; i < width; ++i) {
      result.dx[first + i] = static_cast<double>(inverse * (slope[i] - level - unit[i] * along));
      if (terms == nullptr) continue;
      const double size = (std::abs(data.x[first + i]) + std::abs(static_cast<double>(mean))) * inverse;
      terms->y[first + i] = std::max(size * std::abs(data.weight[i]), std::abs(static_cast<double>(data.bias[i])));
      terms->dx[first + i] =
          inverse * std::max(std::abs(static_cast<double>(slope[i])), std::abs(static_cast<double>(along)) * size);
      terms->dweight[i] = std::max(terms->dweight[i], std::abs(data.dy[first + i]) * size);
      if (c.centered) terms->dbias[i] = std::max(terms->dbias[i], std::abs(static_cast<double>(data.dy[first + i])));
    }
  }
  for (std::size_t i = 0; i < width; ++i) {
    result.dweight[i] = static_cast<double>(dweight[i]);
    if (c.centered) result.dbias[i] = static_cast<double>(dbias[i]);
  }
  return result;
}

struct RowNormError {
  std::string name;
  double error, bound;
};

// The largest difference of each part from the definition in double, beside twice that of the naive form in the worst
// of eight orders (a single one may be right by luck), or three roundings of the largest term or result.
inline std::vector<RowNormError> errors_of(const RowNormCase& c, const RowNormData& data, const RowNormResult& got) {
  RowNormResult terms;
  SumOrder order(c);
  const RowNormResult exact = by_definition<double>(c, data, order, &terms);
  std::vector<RowNormResult> twins;
  std::mt19937 shuffles(1);
  for (int twin = 0; twin < 8; ++twin) {
    twins.push_back(by_definition<float>(c, data, order));
    for (double& y : twins.back().y) y = rounded(c.y_dtype, static_cast<float>(y));
    for (double& dx : twins.back().dx) dx = rounded(c.x_dtype, static_cast<float>(dx));
    std::shuffle(order.columns.begin(), order.columns.end(), shuffles);
    std::shuffle(order.rows.begin(), order.rows.end(), shuffles);
  }
  std::vector<RowNormError> errors;
  const auto compare = [&](const char* name, std::vector<double> RowNormResult::*part, DType dtype) {
    const std::vector<double>&e = exact.*part, &g = got.*part, &t = terms.*part;
    RowNormError result{name, std::numeric_limits<double>::infinity(), 0};
    double naive_error = 0, largest = 0;
    if (g.size() == e.size()) result.error = 0;
    for (std::size_t i = 0; i < e.size() && i < g.size(); ++i) {
      const double error = std::abs(g[i] - e[i]);
      if (!(error <= result.error)) result.error = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
      for (const RowNormResult& twin : twins) naive_error = std::max(naive_error, std::abs((twin.*part)[i] - e[i]));
      largest = std::max({largest, t[i], std::abs(e[i])});
    }
    result.bound = std::max(2 * naive_error, 3 * unit_roundoff(dtype) * largest);
    errors.push_back(result);
  };
  compare("y", &RowNormResult::y, c.y_dtype);
  compare("dx", &RowNormResult::dx, c.x_dtype);
  compare("dweight", &RowNormResult::dweight, DType::kFloat32);
  compare("dbias", &RowNormResult::dbias, DType::kFloat32);
  return errors;
}

}  // namespace cosformer::kernels::testing
