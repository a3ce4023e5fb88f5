// The feature maps φ and their derivatives, one element at a time.
#pragma once

#include <cmath>

#include "kernels/attention.h"

namespace cosformer::kernels {

template <class Real>
Real apply_feature_map(FeatureMap map, Real x) {
  switch (map) {
    case FeatureMap::kRelu: return x < 0 ? Real(0) : x;  // NaN stays NaN
    case FeatureMap::kElu1: return x > 0 ? x + Real(1) : std::exp(x);
    case FeatureMap::kLeakyRelu: return x > 0 ? x : Real(kLeakyReluSlope) * x;
    case FeatureMap::kSilu: return x / (Real(1) + std::exp(-x));
    case FeatureMap::kIdentity: return x;
  }
  return x;
}

template <class Real>
Real feature_map_derivative(FeatureMap map, Real x) {
  switch (map) {
    case FeatureMap::kRelu: return x > 0 ? Real(1) : Real(0);
    case FeatureMap::kElu1: return x > 0 ? Real(1) : std::exp(x);
    case FeatureMap::kLeakyRelu: return x > 0 ? Real(1) : Real(kLeakyReluSlope);
    case FeatureMap::kSilu: {
      const Real sigmoid = Real(1) / (Real(1) + std::exp(-x));
      return sigmoid * (Real(1) + x * (Real(1) - sigmoid));
    }
    case FeatureMap::kIdentity: return Real(1);
  }
  return Real(1);
}

}  // namespace cosformer::kernels
