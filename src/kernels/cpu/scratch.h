// The memory that a pass works in: one thread's scratch and the shared slots of the segment scan.
//
// Internal linkage for the same reason as grid.h. plan.cc carves from a null base to learn the sizes.
#pragma once

#include "kernels/cpu/grid.h"

namespace cosformer::kernels::cpu {
namespace {

constexpr std::int64_t kAlignment = 64;

template <class T>
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<char*>(base)) {}

  template <class Element = T>
  Element* take(std::int64_t count) {
    char* here = base_ == nullptr ? nullptr : base_ + used_;
    used_ += round_up(count * static_cast<std::int64_t>(sizeof(Element)), kAlignment);
    return reinterpret_cast<Element*>(here);
  }
  std::size_t used() const { return static_cast<std::size_t>(used_); }

 private:
  char* base_;
  std::int64_t used_ = 0;
};

// Head dimensions rounded up to whole vectors; the padding of every buffer holds zeros.
struct PaddedShape {
  std::int64_t dim = 0, value_dim = 0, chunk = 0;
  std::int64_t state = 0;       // numbers in one state: kv [2·dim, value_dim], then z [2·dim]
  std::int64_t half_panel = 0;  // numbers in a panel of bf16 factors, 0: products are not in bf16
};

template <class T>
PaddedShape padded_shape(const AttentionProblem& problem, const BodyTraits& traits) {
  const std::int64_t lanes = traits.vector_bytes / static_cast<std::int64_t>(sizeof(T));
  PaddedShape shape;
  shape.dim = round_up(problem.dim, lanes);
  shape.value_dim = round_up(problem.value_dim, lanes);
  shape.chunk = traits.chunk;
  shape.state = round_up(2 * shape.dim * (shape.value_dim + 1), kAlignment / static_cast<std::int64_t>(sizeof(T)));
  if (traits.half_products && problem.dtype == DType::kBFloat16) {
    const std::int64_t features = round_up(2 * shape.dim, 32), values = round_up(shape.value_dim, 32);
    const std::int64_t tokens = round_up(shape.chunk, 32);
    std::int64_t widest = features > values ? features : values;
    widest = widest > tokens ? widest : tokens;
    shape.half_panel = features * values > tokens * widest ? features * values : tokens * widest;
  }
  return shape;
}

// Whether each half of the value columns is whole vectors, and no state of the caller's has to be cut.
template <class T>
bool can_halve_columns(const AttentionProblem& problem, const BodyTraits& traits) {
  const std::int64_t lanes = traits.vector_bytes / static_cast<std::int64_t>(sizeof(T));
  return problem.value_dim % (2 * lanes) == 0 && problem.state_kv_in == nullptr && problem.state_kv_out == nullptr;
}

// Factors rounded to bf16: of the product at hand, and those that are packed when they are loaded.
struct HalfPanels {
  std::uint16_t* left = nullptr;
  std::uint16_t* right = nullptr;
  std::uint16_t* kept[8] = {};
};

template <class T>
HalfPanels carve_half_panels(Carver<T>& carver, const PaddedShape& shape) {
  if (shape.half_panel == 0) return {};
  HalfPanels panels;
  panels.left = carver.template take<std::uint16_t>(shape.half_panel);
  panels.right = carver.template take<std::uint16_t>(shape.half_panel);
  for (std::uint16_t*& panel : panels.kept) panel = carver.template take<std::uint16_t>(shape.half_panel);
  return panels;
}

// Heads of one sequence that a thread takes through each chunk together: their rows are neighbours in memory. As many
// as leave room for their states in the second-level cache.
constexpr std::int64_t kMostHeadsTogether = 8;
constexpr std::int64_t kStatesBytes = 1 << 20;

template <class T>
std::int64_t heads_together(const AttentionProblem& problem, const PaddedShape& shape) {
  std::int64_t heads = kStatesBytes / (shape.state * static_cast<std::int64_t>(sizeof(T)));
  heads = heads < kMostHeadsTogether ? heads : kMostHeadsTogether;
  heads = heads < problem.heads ? heads : problem.heads;
  return heads > 1 && !scans_both_sides(problem) ? heads : 1;
}

// Angles and decay of one head, and the weights of the chunk at hand (body/angles.h).
template <class T>
struct AngleTables {
  double* cos_offset;   // [chunk] cos θt
  double* sin_offset;   // [chunk]
  double* decay_power;  // [chunk + 1] γ^t
  T* toeplitz;          // [2·chunk + vector] cos(θΔ)·γ^|Δ| at chunk − 1 + j − i, zero outside the triangle
  T* lane_numbers;      // [vector] 0, 1, 2, …
  T* query_cos;         // [chunk] weights of the 2·dim features of this chunk's queries, decay included
  T* query_sin;
  T* key_cos;
  T* key_sin;
};

template <class T>
AngleTables<T> carve_angles(Carver<T>& carver, const PaddedShape& shape) {
  AngleTables<T> tables;
  tables.cos_offset = carver.template take<double>(shape.chunk);
  tables.sin_offset = carver.template take<double>(shape.chunk);
  tables.decay_power = carver.template take<double>(shape.chunk + 1);
  tables.toeplitz = carver.take(2 * shape.chunk + kAlignment);
  tables.lane_numbers = carver.take(kAlignment);
  tables.query_cos = carver.take(shape.chunk);
  tables.query_sin = carver.take(shape.chunk);
  tables.key_cos = carver.take(shape.chunk);
  tables.key_sin = carver.take(shape.chunk);
  return tables;
}

template <class T>
struct ForwardScratch {
  AngleTables<T> angles[kMostHeadsTogether];
  HalfPanels half;
  T* phi_q;           // [chunk, dim] φ(q)
  T* phi_k;           // [chunk, dim]
  T* query;           // [chunk, 2·dim] φ(q)·(cos, sin), with the decay since the state
  T* key;             // [chunk, 2·dim]
  T* phi_kt;          // [dim, chunk]
  T* value;           // [chunk, value_dim]
  T* score;           // [chunk, chunk]
  T* sum;             // [chunk, value_dim] numerators
  T* row_sum;         // [chunk] denominators
  T* divisor;         // [chunk] denominators clamped from below
  T* state;           // [heads together] kv, then z
  T* from_right;      // [segment, value_dim] numerators of the scan from the right
  T* row_from_right;  // [segment]
};

template <class T>
ForwardScratch<T> carve_forward(Carver<T>& carver, const AttentionProblem& problem, const PaddedShape& shape,
                                std::int64_t segment_chunks) {
  ForwardScratch<T> scratch;
  const std::int64_t right = scans_both_sides(problem) ? segment_chunks * shape.chunk : 0;
  const std::int64_t heads = heads_together<T>(problem, shape);
  for (std::int64_t h = 0; h < heads; ++h) scratch.angles[h] = carve_angles(carver, shape);
  scratch.half = carve_half_panels(carver, shape);
  scratch.phi_q = carver.take(shape.chunk * shape.dim);
  scratch.phi_k = carver.take(shape.chunk * shape.dim);
  scratch.query = carver.take(shape.chunk * 2 * shape.dim);
  scratch.key = carver.take(shape.chunk * 2 * shape.dim);
  scratch.phi_kt = carver.take(shape.chunk * shape.dim);
  scratch.value = carver.take(shape.chunk * shape.value_dim);
  scratch.score = carver.take(shape.chunk * shape.chunk);
  scratch.sum = carver.take(shape.chunk * shape.value_dim);
  scratch.row_sum = carver.take(shape.chunk);
  scratch.divisor = carver.take(shape.chunk);
  scratch.state = carver.take(heads * shape.state);
  scratch.from_right = carver.take(right * shape.value_dim);
  scratch.row_from_right = carver.take(right);
  return scratch;
}

template <class T>
struct BackwardScratch {
  AngleTables<T> angles[kMostHeadsTogether];
  HalfPanels half;
  T* phi_q;          // [chunk, dim]
  T* phi_k;          // [chunk, dim]
  T* query;          // [chunk, 2·dim]
  T* key;            // [chunk, 2·dim]
  T* phi_kt;         // [dim, chunk]
  T* value;          // [chunk, value_dim]
  T* value_t;        // [value_dim, chunk]
  T* grad;           // [chunk, value_dim] g, the gradient of the numerators
  T* grad_sum;       // [chunk] e, the gradient of the denominators
  T* score;          // [chunk, chunk]
  T* d_score;        // [chunk, chunk]
  T* wide;           // [chunk, 2·dim] or [2·dim, chunk]
  T* d_phi;          // [chunk, dim]
  T* d_phi_t;        // [dim, chunk]
  T* d_value;        // [chunk, value_dim]
  T* state;          // [heads together] of keys and values, transposed: kv [value_dim, 2·dim], then z
  T* d_state;        // [heads together] of queries and gradients: kv [2·dim, value_dim], then z
  T* raw;            // [chunk, max(dim, value_dim)] rows as they came
  T* row_product;    // [chunk] φ·dφ of each row
  T* dq_from_right;  // [segment, dim]: what the scan from the other side gave
  T* dk_from_left;   // [segment, dim]
  T* dv_from_left;   // [segment, value_dim]
};

template <class T>
BackwardScratch<T> carve_backward(Carver<T>& carver, const AttentionProblem& problem, const PaddedShape& shape,
                                  std::int64_t segment_chunks) {
  BackwardScratch<T> scratch;
  const std::int64_t other = scans_both_sides(problem) ? segment_chunks * shape.chunk : 0;
  const std::int64_t widest = shape.dim > shape.value_dim ? shape.dim : shape.value_dim;
  const std::int64_t heads = heads_together<T>(problem, shape);
  for (std::int64_t h = 0; h < heads; ++h) scratch.angles[h] = carve_angles(carver, shape);
  scratch.half = carve_half_panels(carver, shape);
  scratch.phi_q = carver.take(shape.chunk * shape.dim);
  scratch.phi_k = carver.take(shape.chunk * shape.dim);
  scratch.query = carver.take(shape.chunk * 2 * shape.dim);
  scratch.key = carver.take(shape.chunk * 2 * shape.dim);
  scratch.phi_kt = carver.take(shape.chunk * shape.dim);
  scratch.value = carver.take(shape.chunk * shape.value_dim);
  scratch.value_t = carver.take(shape.chunk * shape.value_dim);
  scratch.grad = carver.take(shape.chunk * shape.value_dim);
  scratch.grad_sum = carver.take(shape.chunk);
  scratch.score = carver.take(shape.chunk * shape.chunk);
  scratch.d_score = carver.take(shape.chunk * shape.chunk);
  scratch.wide = carver.take(shape.chunk * 2 * shape.dim);
  scratch.d_phi = carver.take(shape.chunk * shape.dim);
  scratch.d_phi_t = carver.take(shape.chunk * shape.dim);
  scratch.d_value = carver.take(shape.chunk * shape.value_dim);
  scratch.state = carver.take(heads * shape.state);
  scratch.d_state = carver.take(heads * shape.state);
  scratch.raw = carver.take(shape.chunk * widest);
  scratch.row_product = carver.take(shape.chunk);
  scratch.dq_from_right = carver.take(other * shape.dim);
  scratch.dk_from_left = carver.take(other * shape.dim);
  scratch.dv_from_left = carver.take(other * shape.value_dim);
  return scratch;
}

}  // namespace
}  // namespace cosformer::kernels::cpu
