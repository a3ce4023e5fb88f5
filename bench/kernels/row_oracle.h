// Rows of the benchmark's results beside the definition in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/cuda/device_memory.h"
#include "kernels/dtype.h"

namespace cosformer::kernels::cuda::testing {

struct Shape {
  const char* name;
  DType dtype;
  std::int64_t batch, length, heads, dim;
  bool causal, decay, packed;
};

// One head of one row of the batch on the host.
class Head {
 public:
  Head(const Shape& shape, const DeviceMemory& tensor, std::int64_t batch, std::int64_t head)
      : length_(shape.length), dim_(shape.dim), values_(static_cast<std::size_t>(shape.length * shape.dim)) {
    const std::size_t element = size_of(shape.dtype);
    std::vector<std::uint8_t> raw(values_.size() * element);
    const auto row = static_cast<std::size_t>(dim_) * element;
    const auto* from = tensor.data<std::uint8_t>() +
                       static_cast<std::size_t>((batch * shape.length * shape.heads + head) * dim_) * element;
    check(cudaMemcpy2D(raw.data(), row, from, row * static_cast<std::size_t>(shape.heads), row,
                       static_cast<std::size_t>(length_), cudaMemcpyDeviceToHost),
          "cudaMemcpy2D");
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (shape.dtype == DType::kFloat32) values_[i] = reinterpret_cast<const float*>(raw.data())[i];
      if (shape.dtype == DType::kBFloat16) values_[i] = to_float(reinterpret_cast<const BFloat16*>(raw.data())[i]);
      if (shape.dtype == DType::kFloat16) values_[i] = to_float(reinterpret_cast<const Float16*>(raw.data())[i]);
    }
  }
  const double* row(std::int64_t t) const { return values_.data() + t * dim_; }

 private:
  std::int64_t length_, dim_;
  std::vector<double> values_;
};

// Rows of one head by the definition in double, compared with what the kernels gave.
class RowOracle {
 public:
  RowOracle(const Shape& shape, double theta, double log_decay, const Head& q, const Head& k, const Head& v,
            const Head& dout)
      : s_(shape), theta_(theta), log_decay_(log_decay), q_(q), k_(k), v_(v), dout_(dout) {}

  std::vector<double> out(std::int64_t i, double* sum = nullptr) const {
    std::vector<double> result(static_cast<std::size_t>(s_.dim), 0.0);
    double total = 0;
    each_key(i, [&](std::int64_t j, double c) {
      double w = 0;
      for (std::int64_t d = 0; d < s_.dim; ++d) w += relu(q_.row(i)[d]) * relu(k_.row(j)[d]);
      w *= c;
      total += w;
      for (std::int64_t d = 0; d < s_.dim; ++d) result[static_cast<std::size_t>(d)] += w * v_.row(j)[d];
    });
    for (double& x : result) x /= std::max(total, 1e-6);
    if (sum != nullptr) *sum = total;
    return result;
  }

  std::vector<double> query_gradient(std::int64_t i) const {
    std::vector<double> result(static_cast<std::size_t>(s_.dim), 0.0);
    double total = 0;
    const std::vector<double> o = out(i, &total);
    double e = 0;
    for (std::int64_t d = 0; d < s_.dim; ++d) e -= dout_.row(i)[d] * o[static_cast<std::size_t>(d)];
    each_key(i, [&](std::int64_t j, double c) {
      double dw = e;
      for (std::int64_t d = 0; d < s_.dim; ++d) dw += dout_.row(i)[d] * v_.row(j)[d];
      dw *= c / total;
      for (std::int64_t d = 0; d < s_.dim; ++d) result[static_cast<std::size_t>(d)] += dw * relu(k_.row(j)[d]);
    });
    for (std::int64_t d = 0; d < s_.dim; ++d) {
      if (q_.row(i)[d] <= 0) result[static_cast<std::size_t>(d)] = 0;
    }
    return result;
  }

  // dk and dv of key j, for which every query is needed that sees it.
  void key_gradients(std::int64_t j, std::vector<double>& dk, std::vector<double>& dv) const {
    dk.assign(static_cast<std::size_t>(s_.dim), 0.0);
    dv.assign(static_cast<std::size_t>(s_.dim), 0.0);
    for (std::int64_t i = s_.causal ? j : 0; i < s_.length; ++i) {
      double total = 0;
      const std::vector<double> o = out(i, &total);
      double w = 0, dw = 0;
      for (std::int64_t d = 0; d < s_.dim; ++d) {
        w += relu(q_.row(i)[d]) * relu(k_.row(j)[d]);
        dw += dout_.row(i)[d] * (v_.row(j)[d] - o[static_cast<std::size_t>(d)]);
      }
      const double c = weight(i - j) / total;
      for (std::int64_t d = 0; d < s_.dim; ++d) {
        dk[static_cast<std::size_t>(d)] += c * dw * relu(q_.row(i)[d]);
        dv[static_cast<std::size_t>(d)] += c * w * dout_.row(i)[d];
      }
    }
    for (std::int64_t d = 0; d < s_.dim; ++d) {
      if (k_.row(j)[d] <= 0) dk[static_cast<std::size_t>(d)] = 0;
    }
  }

 private:
  static double relu(double x) { return x > 0 ? x : 0; }
  double weight(std::int64_t distance) const {
    const double n = std::abs(static_cast<double>(distance));
    return std::cos(theta_ * n) * std::exp(log_decay_ * n);
  }
  template <class Visit>
  void each_key(std::int64_t i, Visit visit) const {
    const std::int64_t end = s_.causal ? i + 1 : s_.length;
    for (std::int64_t j = 0; j < end; ++j) visit(j, weight(i - j));
  }

  const Shape& s_;
  double theta_, log_decay_;
  const Head &q_, &k_, &v_, &dout_;
};

// Norm of the difference over norm of the oracle, over the rows seen.
struct RelativeError {
  double difference = 0, norm = 0;
  int rows = 0;
  void add(const std::vector<double>& exact, const double* got) {
    ++rows;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      difference += (exact[i] - got[i]) * (exact[i] - got[i]);
      norm += exact[i] * exact[i];
    }
  }
  // As JSON: null where no row was compared.
  std::string text() const {
    if (rows == 0) return "null";
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.2e", std::sqrt(difference / std::max(norm, 1e-300)));
    return digits;
  }
};

}  // namespace cosformer::kernels::cuda::testing
