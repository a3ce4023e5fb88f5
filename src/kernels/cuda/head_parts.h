// Heads of more than 128 as problems of up to 128 columns on either side, which the warpgroup kernels take.
//
// Scores and row sums add up over blocks of features, their gradients over blocks of values. So every pair of a block
// of features and one of values is a problem by itself, with its own share of e = −dout·out, and
//   out, dv of a block of values     are sums over the blocks of features,
//   dq, dk of a block of features    are sums over the blocks of values.
// What an earlier pair has left is added to as the second of two sides does in full attention with a decay.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/pass_params.h"

namespace cosformer::kernels::cuda {

// Which of the pairs a pass is for, and how each of its results comes about.
struct HeadPart {
  int number = 0, count = 1;
  SweepPass out = SweepPass::kOnly, features = SweepPass::kOnly, values = SweepPass::kOnly;

  SweepPass pass_of(Role role) const {
    if (role == Role::kForward) return out;
    return role == Role::kValueGradient ? values : features;
  }
  bool last() const { return number + 1 == count; }
};

// A side of a head in one block or two.
class HeadSide {
 public:
  explicit HeadSide(std::int64_t columns)
      : columns_(columns), first_(columns <= kWarpgroupDim ? columns : (columns / 2 + 7) / 8 * 8) {}
  int blocks() const { return first_ == columns_ ? 1 : 2; }
  std::int64_t begin(int block) const { return block == 0 ? 0 : first_; }
  std::int64_t columns(int block) const { return block == 0 ? first_ : columns_ - first_; }
  // Blocks need as many slices each.
  bool even() const { return blocks() == 1 || columns(1) > kNarrowDim; }

 private:
  std::int64_t columns_, first_;
};

// By shapes and options; whether the kernels take the parts is theirs to say.
inline bool may_come_in_parts(const Problem& p) {
  const bool wide = p.dim > kWarpgroupDim || p.value_dim > kWarpgroupDim;
  const bool aligned = p.dim % 8 == 0 && p.value_dim % 8 == 0;
  return wide && aligned && HeadSide(p.dim).even() && HeadSide(p.value_dim).even() && p.dtype == DType::kBFloat16 &&
         p.feature_map == FeatureMap::kRelu && (p.causal || p.log_decay == nullptr) && p.state_kv_in == nullptr &&
         p.state_kv_out == nullptr && warpgroup_available();
}

template <class AnyView>
AnyView columns_from(AnyView view, std::int64_t first, DType dtype) {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(view.data)>>, const char, char>;
  if (view.data != nullptr)
    view.data = static_cast<Byte*>(view.data) + first * static_cast<std::int64_t>(size_of(dtype));
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
  part.key_sums = nullptr;
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

// visit(problem, gradients, part) of each part in its order, or of the whole where it does not come in parts.
template <class Visit>
void for_each_part(const Problem& p, const Gradients* g, Visit visit) {
  const HeadSide features(p.dim), values(p.value_dim);
  const auto pass = [](int block, int blocks) {
    return blocks == 1 ? SweepPass::kOnly : (block == 0 ? SweepPass::kFirstOfTwo : SweepPass::kSecondOfTwo);
  };
  const auto each = [&](auto use) {
    for (int v = 0; v < values.blocks(); ++v) {
      for (int f = 0; f < features.blocks(); ++f) {
        const Problem problem = part_of(p, features, f, values, v);
        const Gradients gradients = g == nullptr ? Gradients{} : part_of(*g, p.dtype, features, f, values, v);
        const SweepPass over_features = pass(f, features.blocks());
        use(problem, g == nullptr ? nullptr : &gradients,
            HeadPart{v * features.blocks() + f, features.blocks() * values.blocks(), over_features,
                     pass(v, values.blocks()), over_features});
      }
    }
  };
  bool suited = may_come_in_parts(p) && (g == nullptr || (g->d_state_kv_out == nullptr && g->d_state_kv_in == nullptr));
  if (suited) {
    each([&](const Problem& problem, const Gradients* gradients, const HeadPart&) {
      suited = suited && suits_warpgroup(problem, gradients);
    });
  }
  if (suited) {
    each(visit);
  } else {
    Problem whole = p;
    if (may_come_in_parts(p)) whole.key_sums = nullptr;  // parts have none, so key_sum_floats leaves them no room
    visit(whole, g, HeadPart{});
  }
}

}  // namespace cosformer::kernels::cuda
