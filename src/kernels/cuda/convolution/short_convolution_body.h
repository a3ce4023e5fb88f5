// What one thread of the convolution does. No thread needs another, so that the same text also runs on a host, item
// after item, where it is tested.
#pragma once

#include <cstdint>

#include "kernels/cuda/lanes.h"

namespace cosformer::kernels::cuda {

constexpr int kTileTokens = 8;   // outputs of a thread: its weights are read once for all of them
constexpr int kPartTokens = 64;  // of one partial sum of the weights' gradient
constexpr int kTapGroup = 8;     // taps whose sums a thread keeps in registers

struct ConvolutionSizes {
  std::int64_t batch, time, channels, width, before;
};

template <class Io>
struct TokenRows {
  const typename Io::Stored* data;
  std::int64_t batch_stride, time_stride;
};

// Neighbouring items have neighbouring channels, for the memory's sake.
COSFORMER_ITEM std::int64_t convolution_items(const ConvolutionSizes& s, int lanes, std::int64_t tokens) {
  return s.batch * parts_of(s.time, tokens) * (s.channels / lanes);
}

template <class Io, int kLanes>
COSFORMER_ITEM void convolve_item(const ConvolutionSizes& s, const TokenRows<Io>& x, const float* weight, bool reversed,
                                  typename Io::Stored* y, std::int64_t item) {
  const std::int64_t groups = s.channels / kLanes, tiles = parts_of(s.time, kTileTokens);
  const std::int64_t channel = item % groups * kLanes, row = item / groups;
  const std::int64_t batch = row / tiles, begin = row % tiles * kTileTokens;
  const typename Io::Stored* source = x.data + batch * x.batch_stride + channel;
  float sum[kTileTokens][kLanes] = {};
  for (std::int64_t j = 0; j < s.width; ++j) {
    float w[kLanes];
    COSFORMER_UNROLL
    for (int l = 0; l < kLanes; ++l) w[l] = weight[(reversed ? s.width - 1 - j : j) * s.channels + channel + l];
    COSFORMER_UNROLL
    for (int t = 0; t < kTileTokens; ++t) {
      const std::int64_t from = begin + t + j - s.before;
      if (from < 0 || from >= s.time) continue;
      float values[kLanes];
      load_lanes<Io, kLanes>(source + from * x.time_stride, values);
      COSFORMER_UNROLL
      for (int l = 0; l < kLanes; ++l) sum[t][l] += w[l] * values[l];
    }
  }
  COSFORMER_UNROLL
  for (int t = 0; t < kTileTokens; ++t) {
    if (begin + t >= s.time) break;
    store_lanes<Io, kLanes>(sum[t], y + (batch * s.time + begin + t) * s.channels + channel);
  }
}

// dw[j, c] = Σ_t dy[t, c] x[t + j − before, c] over one part of the tokens.
template <class Io, int kLanes>
COSFORMER_ITEM void weight_gradient_item(const ConvolutionSizes& s, const TokenRows<Io>& x, const TokenRows<Io>& dy,
                                         float* partial, std::int64_t item) {
  const std::int64_t groups = s.channels / kLanes, parts = parts_of(s.time, kPartTokens);
  const std::int64_t channel = item % groups * kLanes, row = item / groups;
  const std::int64_t batch = row / parts, begin = row % parts * kPartTokens;
  const std::int64_t end = begin + kPartTokens < s.time ? begin + kPartTokens : s.time;
  const typename Io::Stored* inputs = x.data + batch * x.batch_stride + channel;
  const typename Io::Stored* gradients = dy.data + batch * dy.batch_stride + channel;
  for (std::int64_t first = 0; first < s.width; first += kTapGroup) {
    float sum[kTapGroup][kLanes] = {};
    for (std::int64_t t = begin; t < end; ++t) {
      float g[kLanes];
      load_lanes<Io, kLanes>(gradients + t * dy.time_stride, g);
      COSFORMER_UNROLL
      for (int tap = 0; tap < kTapGroup; ++tap) {
        const std::int64_t from = t + first + tap - s.before;
        if (first + tap >= s.width || from < 0 || from >= s.time) continue;
        float values[kLanes];
        load_lanes<Io, kLanes>(inputs + from * x.time_stride, values);
        COSFORMER_UNROLL
        for (int l = 0; l < kLanes; ++l) sum[tap][l] += g[l] * values[l];
      }
    }
    COSFORMER_UNROLL
    for (int tap = 0; tap < kTapGroup; ++tap) {
      if (first + tap >= s.width) continue;
      COSFORMER_UNROLL
      for (int l = 0; l < kLanes; ++l) partial[(row * s.width + first + tap) * s.channels + channel + l] = sum[tap][l];
    }
  }
}

}  // namespace cosformer::kernels::cuda
