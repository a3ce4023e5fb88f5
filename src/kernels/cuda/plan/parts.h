// The parts of a problem whose heads go through the kernels in blocks of columns (head_blocks.h), one after the other.
#pragma once

#include <type_traits>

#include "kernels/cuda/choice.h"
#include "kernels/cuda/sweep_params.h"

namespace cosformer::kernels::cuda {

// Which of the parts it is, and how each of its results comes about.
struct HeadPart {
  int number = 0, count = 1;
  Contribution out = Contribution::kOnly, features = Contribution::kOnly, values = Contribution::kOnly;

  Contribution contribution_of(Role role) const {
    if (role == Role::kForward) return out;
    return role == Role::kValueGradient ? values : features;
  }
  bool last() const { return number + 1 == count; }
};

template <class AnyView>
AnyView columns_from(AnyView view, std::int64_t first, DType dtype) {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(view.data)>>, const char, char>;
  if (view.data != nullptr) {
    view.data = static_cast<Byte*>(view.data) + first * static_cast<std::int64_t>(size_of(dtype));
  }
  return view;
}

inline Problem part_of(const Problem& p, const HeadSide& features, int f, const HeadSide& values, int v) {
  Problem part = p;
  part.dim = features.columns(f);
  part.value_dim = values.columns(v);
  part.q = columns_from(p.q, features.begin(f), p.dtype);
  part.k = columns_from(p.k, features.begin(f), p.dtype);
  part.v = columns_from(p.v, values.begin(v), p.dtype);
  part.out = columns_from(p.out, values.begin(v), p.dtype);
  return part;
}

inline Gradients part_of(const Gradients& g, DType dtype, const HeadSide& features, int f, const HeadSide& values,
                         int v) {
  Gradients part = g;
  part.dout = columns_from(g.dout, values.begin(v), dtype);
  part.dq = columns_from(g.dq, features.begin(f), dtype);
  part.dk = columns_from(g.dk, features.begin(f), dtype);
  part.dv = columns_from(g.dv, values.begin(v), dtype);
  return part;
}

// visit(problem, gradients, part) of each part in its order, or of the whole where there is only one.
template <class Visit>
void for_each_part(const Problem& p, const Gradients* g, const HeadParts& parts, Visit visit) {
  if (parts.count() == 1) {
    visit(p, g, HeadPart{});
    return;
  }
  const HeadSide features(p.dim), values(p.value_dim);
  const auto contribution = [](int block, int blocks) {
    return blocks == 1 ? Contribution::kOnly : (block == 0 ? Contribution::kFirstOfTwo : Contribution::kSecondOfTwo);
  };
  for (int v = 0; v < parts.values; ++v) {
    for (int f = 0; f < parts.features; ++f) {
      const Problem problem = part_of(p, features, f, values, v);
      const Gradients gradients = g == nullptr ? Gradients{} : part_of(*g, p.dtype, features, f, values, v);
      const Contribution over_features = contribution(f, parts.features);
      visit(
          problem, g == nullptr ? nullptr : &gradients,
          HeadPart{v * parts.features + f, parts.count(), over_features, contribution(v, parts.values), over_features});
    }
  }
}

}  // namespace cosformer::kernels::cuda
