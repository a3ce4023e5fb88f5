// Cosines, sines and powers of the decay: one double-precision sine and cosine per chunk, combined with a table of the
// offsets inside a chunk by angle addition. No position ever becomes a float.
#pragma once

#include "kernels/cpu/body/features.h"

namespace cosformer::kernels::cpu {
namespace {

// A scan goes over the chunks from the left (each query sees its own key and those before it) or from the right (only
// those after it). Seen along the scan the two are the same but for the diagonal.
enum class Scan { kFromLeft, kFromRight };

template <class T>
void prepare_offsets(const HeadContext& head, const AngleTables<T>& tables) {
  const Index longest = head.grid.query_length > head.grid.key_length ? head.grid.query_length : head.grid.key_length;
  const Index used = longest < head.shape.chunk ? longest : head.shape.chunk;
  for (Index t = 0; t < used; ++t) {
    const double offset = static_cast<double>(t);
    tables.cos_offset[t] = ::cos(head.theta() * offset);
    tables.sin_offset[t] = ::sin(head.theta() * offset);
    tables.decay_power[t] = ::exp(head.log_decay() * offset);
  }
  for (Index lane = 0; lane < kLanes<T>; ++lane) tables.lane_numbers[lane] = static_cast<T>(lane);
  tables.decay_power[used] = ::exp(head.log_decay() * static_cast<double>(used));
}

// The table of weights inside a chunk for one scan; everything outside its triangle is zero.
template <class T>
void prepare_toeplitz(const HeadContext& head, const AngleTables<T>& tables, Scan scan) {
  const Index chunk = head.shape.chunk;
  const Index longest = head.grid.query_length > head.grid.key_length ? head.grid.query_length : head.grid.key_length;
  const Index used = longest < chunk ? longest : chunk;
  fill_zero(tables.toeplitz, 2 * chunk + kAlignment);
  for (Index t = 0; t < used; ++t) {
    const T weight = static_cast<T>(tables.cos_offset[t] * tables.decay_power[t]);
    if (scan == Scan::kFromLeft) tables.toeplitz[chunk - 1 - t] = weight;  // j = i − t
    if (scan == Scan::kFromRight && t > 0) tables.toeplitz[chunk - 1 + t] = weight;
  }
}

// The weights of this chunk's features. The state that a chunk meets counts distance from the token before it along the
// scan, so query u (counted along the scan) is u + 1 away from it and key u is length − 1 − u away from the next.
template <class T>
void prepare_chunk(const HeadContext& head, const AngleTables<T>& tables, const Chunk& chunk, Scan scan) {
  Index position = head.sequence.position + chunk.begin;
  if (head.sequence.period > 0 && head.problem.theta == nullptr) position %= head.sequence.period;
  const double angle = head.theta() * static_cast<double>(position);
  const double cos_begin = ::cos(angle), sin_begin = ::sin(angle);
  for (Index t = 0; t < chunk.length; ++t) {
    const Index u = scan == Scan::kFromLeft ? t : chunk.length - 1 - t;
    const double cosine = cos_begin * tables.cos_offset[t] - sin_begin * tables.sin_offset[t];
    const double sine = sin_begin * tables.cos_offset[t] + cos_begin * tables.sin_offset[t];
    const double to_query = tables.decay_power[u + 1], from_key = tables.decay_power[chunk.length - 1 - u];
    tables.query_cos[t] = static_cast<T>(cosine * to_query);
    tables.query_sin[t] = static_cast<T>(sine * to_query);
    tables.key_cos[t] = static_cast<T>(cosine * from_key);
    tables.key_sin[t] = static_cast<T>(sine * from_key);
  }
}

// score[i][j] = (score[i][j] + row_bias[i])·weight of the pair; elements outside the triangle become zero whatever they
// were, so a value that a query must not see cannot reach it even as 0·inf. row_bias null: 0.
template <class T>
void apply_toeplitz(const AngleTables<T>& tables, Index queries, Index keys, Index chunk, Scan scan, const T* row_bias,
                    T* score) {
  const Vector<T> zero = {};
  const Vector<T> lane = load(tables.lane_numbers);
  for (Index i = 0; i < queries; ++i) {
    const T* weights = tables.toeplitz + (chunk - 1 - i);
    T* row = score + i * chunk;
    const T bias = row_bias == nullptr ? T(0) : row_bias[i];
    const Index begin = scan == Scan::kFromLeft ? 0 : (i + 1 < keys ? i + 1 : keys);
    const Index end = scan == Scan::kFromLeft && i + 1 < keys ? i + 1 : keys;
    for (Index j = 0; j < chunk; j += kLanes<T>) {
      if (j >= end || j + kLanes<T> <= begin) {
        store(row + j, zero);
        continue;
      }
      Vector<T> x = (load(row + j) + bias) * load(weights + j);
      if (j + kLanes < T >> end) x = lane < static_cast<T>(end - j) ? x : zero;
      if (j < begin) x = lane < static_cast<T>(begin - j) ? zero : x;
      store(row + j, x);
    }
  }
}

}  // namespace
}  // namespace cosformer::kernels::cpu
