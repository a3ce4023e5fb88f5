#include "ops/arguments.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include <fmt/core.h>

#include "kernels/attention.h"

namespace cosformer::ops {
namespace {

constexpr std::int64_t kMostPosition = std::int64_t{1} << 62;  // adding a length to it cannot overflow
constexpr double kLeastHorizon = 1e-300;                       // π/2M stays finite

// What is checked, and for which operator.
struct Request {
  const AttentionArguments& arguments;
  const char* op;
  bool carries_state;
  const at::Tensor &q = arguments.q, &k = arguments.k, &v = arguments.v;
  const at::Tensor &state_kv = arguments.state_kv, &state_z = arguments.state_z, &position = arguments.position;
  const AttentionOptions& options = arguments.options;
};

// Every complaint reads: operator: argument 'name' must be …; got …
#define COSFORMER_CHECK(condition, name, expected, ...) \
  TORCH_CHECK_VALUE(condition, r.op, ": argument '", name, "' must be ", expected, "; got ", __VA_ARGS__)

// What a kernel could not read. Before anything else is asked of a tensor.
void check_dense(const Request& r, const char* name, const at::Tensor& x) {
  if (!x.defined()) return;
  COSFORMER_CHECK(x.layout() == at::kStrided, name, "a dense tensor", x.layout());
}

void check_input(const Request& r, const char* name, const at::Tensor& x) {
  COSFORMER_CHECK(x.defined(), name, "a tensor [batch, time, heads, dim]", "nothing");
  check_dense(r, name, x);
  COSFORMER_CHECK(x.dim() == 4, name, "of 4 dimensions [batch, time, heads, dim]", x.dim(), ": ", x.sizes());
  const auto type = x.scalar_type();
  const bool on_cpu_only = type == at::kDouble;
  COSFORMER_CHECK(type == at::kFloat || type == at::kBFloat16 || type == at::kHalf || on_cpu_only, name,
                  "float32, bfloat16, float16 or (on the CPU) float64", type);
  COSFORMER_CHECK(!(on_cpu_only && x.is_cuda()), name, "float32, bfloat16 or float16 on a GPU", type);
  COSFORMER_CHECK(x.size(3) <= 1 || x.stride(3) == 1 || x.numel() == 0, name,
                  "contiguous in its last dimension (call .contiguous())", "stride ", x.stride(3));
  COSFORMER_CHECK(x.size(3) >= 1 && x.size(3) <= kernels::kMaxHeadDim, name,
                  fmt::format("of head dimension 1 to {}", kernels::kMaxHeadDim), x.size(3));
}

void check_same(const Request& r, const char* name, const at::Tensor& x) {
  COSFORMER_CHECK(x.scalar_type() == r.q.scalar_type(), name,
                  std::string("of q's dtype ") + c10::toString(r.q.scalar_type()), x.scalar_type());
  COSFORMER_CHECK(x.device() == r.q.device(), name, "on q's device " + r.q.device().str(), x.device().str());
}

void check_qkv(const Request& r) {
  check_input(r, "q", r.q);
  check_input(r, "k", r.k);
  check_input(r, "v", r.v);
  check_same(r, "k", r.k);
  check_same(r, "v", r.v);
  const auto b = r.q.size(0), h = r.q.size(2), d = r.q.size(3), tk = r.k.size(1);
  COSFORMER_CHECK(r.k.size(0) == b && r.k.size(2) == h && r.k.size(3) == d, "k",
                  c10::str("[", b, ", time, ", h, ", ", d, "] (batch, heads and dim of q)"), r.k.sizes());
  COSFORMER_CHECK(r.v.size(0) == b && r.v.size(1) == tk && r.v.size(2) == h, "v",
                  c10::str("[", b, ", ", tk, ", ", h, ", dim] (batch, time and heads of k)"), r.v.sizes());
}

void check_per_head(const Request& r, const char* name, const at::Tensor& x) {
  if (!x.defined()) return;
  COSFORMER_CHECK(x.dim() == 1 && x.size(0) == r.q.size(2), name, c10::str("[", r.q.size(2), "], one number per head"),
                  x.sizes());
  COSFORMER_CHECK(x.scalar_type() == at::kFloat || (x.scalar_type() == at::kDouble && !x.is_cuda()), name, "float32",
                  x.scalar_type());
  COSFORMER_CHECK(x.device() == r.q.device(), name, "on q's device " + r.q.device().str(), x.device().str());
}

// Names the first head whose value is not as it should be.
void require_all(const Request& r, const char* name, const char* expected, const at::Tensor& values,
                 const at::Tensor& good) {
  if (good.all().item<bool>()) return;
  const auto head = good.logical_not().nonzero()[0][0].item<std::int64_t>();
  COSFORMER_CHECK(false, name, expected, values[head].item<double>(), " for head ", head);
}

void check_values_per_head(const Request& r) {
  if (r.options.theta.defined() && r.options.theta.is_cpu()) {
    require_all(r, "theta", "finite", r.options.theta.detach(), r.options.theta.detach().isfinite());
  }
  if (r.options.log_decay.defined() && r.options.log_decay.is_cpu()) {
    const at::Tensor values = r.options.log_decay.detach();
    require_all(r, "log_decay", "finite and at most 0 (the logarithm of a decay in (0, 1])", values,
                values.isfinite().logical_and(values <= 0));
  }
}

void check_mask(const Request& r) {
  if (!r.options.key_mask.defined()) return;
  const at::Tensor& m = r.options.key_mask;
  COSFORMER_CHECK(m.scalar_type() == at::kBool, "key_mask", "bool (true = present)", m.scalar_type());
  COSFORMER_CHECK(m.dim() == 2 && m.size(0) == r.k.size(0) && m.size(1) == r.k.size(1), "key_mask",
                  c10::str("[", r.k.size(0), ", ", r.k.size(1), "] (batch and time of k)"), m.sizes());
  COSFORMER_CHECK(m.device() == r.q.device(), "key_mask", "on q's device " + r.q.device().str(), m.device().str());
}

void check_boundaries(const Request& r, const char* name, const at::Tensor& cu, const char* of, std::int64_t total) {
  COSFORMER_CHECK(cu.scalar_type() == at::kInt || cu.scalar_type() == at::kLong, name, "int32 or int64",
                  cu.scalar_type());
  COSFORMER_CHECK(cu.dim() == 1 && cu.size(0) >= 1, name, "[sequences + 1]", cu.sizes());
  COSFORMER_CHECK(cu.device() == r.q.device(), name, "on q's device " + r.q.device().str(), cu.device().str());
  if (!cu.is_cpu()) return;
  const at::Tensor values = cu.to(at::kLong).contiguous();
  const auto* at = values.data_ptr<std::int64_t>();
  const std::int64_t last = values.size(0) - 1;
  COSFORMER_CHECK(at[0] == 0, name, "starting at 0", at[0]);
  for (std::int64_t s = 0; s < last; ++s) {
    COSFORMER_CHECK(at[s] <= at[s + 1], name, "non-decreasing", at[s], " then ", at[s + 1], " at index ", s + 1);
  }
  COSFORMER_CHECK(at[last] == total, name, c10::str("ending at ", total, ", the time dimension of ", of), at[last]);
}

void check_packing(const Request& r) {
  if (!r.options.cu_seqlens_q.defined() && !r.options.cu_seqlens_k.defined()) return;
  COSFORMER_CHECK(r.options.cu_seqlens_q.defined(), "cu_seqlens_q", "given together with cu_seqlens_k", "nothing");
  COSFORMER_CHECK(r.options.cu_seqlens_k.defined(), "cu_seqlens_k", "given together with cu_seqlens_q", "nothing");
  COSFORMER_CHECK(r.q.size(0) == 1, "q", "of batch 1 when sequences are packed by cu_seqlens", "batch ", r.q.size(0));
  check_boundaries(r, "cu_seqlens_q", r.options.cu_seqlens_q, "q", r.q.size(1));
  check_boundaries(r, "cu_seqlens_k", r.options.cu_seqlens_k, "k", r.k.size(1));
  COSFORMER_CHECK(r.options.cu_seqlens_q.size(0) == r.options.cu_seqlens_k.size(0), "cu_seqlens_k",
                  c10::str("of cu_seqlens_q's size [", r.options.cu_seqlens_q.size(0), "]"),
                  r.options.cu_seqlens_k.sizes());
}

void check_state(const Request& r) {
  if (!r.carries_state) return;
  const auto require = [&](const char* name, const at::Tensor& x) {
    COSFORMER_CHECK(x.defined(), name, "a tensor (AttentionState::empty makes a fresh state)", "nothing");
  };
  require("state_kv", r.state_kv);
  require("state_z", r.state_z);
  require("position", r.position);
  const auto b = r.q.size(0), h = r.q.size(2), d = r.q.size(3), e = r.v.size(3);
  COSFORMER_CHECK(r.k.size(1) == r.q.size(1), "k", c10::str("of q's time ", r.q.size(1), " when a state is carried"),
                  r.k.size(1));
  const auto type = accumulation_type(r.q.scalar_type());
  const auto check = [&](const char* name, const at::Tensor& x, at::IntArrayRef shape) {
    COSFORMER_CHECK(x.sizes() == shape, name, c10::str(shape), x.sizes());
    COSFORMER_CHECK(x.scalar_type() == type, name, type == at::kDouble ? "float64" : "float32", x.scalar_type());
    COSFORMER_CHECK(x.device() == r.q.device(), name, "on q's device " + r.q.device().str(), x.device().str());
  };
  check("state_kv", r.state_kv, {b, h, 2, d, e});
  check("state_z", r.state_z, {b, h, 2, d});
  COSFORMER_CHECK(r.position.scalar_type() == at::kLong, "position", "int64", r.position.scalar_type());
  COSFORMER_CHECK(r.position.dim() == 1 && r.position.size(0) == b, "position", c10::str("[", b, "], one per sequence"),
                  r.position.sizes());
  COSFORMER_CHECK(r.position.device() == r.q.device() || r.position.is_cpu(), "position",
                  "on q's device " + r.q.device().str(), r.position.device().str());
}

// The distance of the farthest pair of tokens in [Tq, Tk] after `behind` carried tokens; −1: no pair at all.
std::int64_t farthest_pair(const Request& r, std::int64_t tq, std::int64_t tk, std::int64_t behind) {
  if (tq == 0 || tk == 0) return -1;
  return r.options.causal ? behind + tq - 1 : std::max(tq, tk) - 1;
}

void check_reach(const Request& r, std::int64_t distance, const std::string& where) {
  TORCH_CHECK_VALUE(static_cast<double>(distance) <= *r.options.horizon, r.op, ": argument 'horizon' must be at least ",
                    distance, ", the distance of the farthest pair of tokens", where,
                    " (beyond it weights turn negative); got ", *r.options.horizon,
                    ". Give a larger horizon or shorter sequences");
}

void check_distances(const Request& r) {
  if (r.arguments.packed_on_cpu()) {
    const at::Tensor cu_q = r.options.cu_seqlens_q.to(at::kLong).contiguous(),
                     cu_k = r.options.cu_seqlens_k.to(at::kLong).contiguous();
    const auto *q = cu_q.data_ptr<std::int64_t>(), *k = cu_k.data_ptr<std::int64_t>();
    for (std::int64_t s = 0; s + 1 < cu_q.size(0); ++s) {
      check_reach(r, farthest_pair(r, q[s + 1] - q[s], k[s + 1] - k[s], 0), c10::str(" in sequence ", s));
    }
    return;
  }
  if (r.options.cu_seqlens_q.defined()) return;
  std::int64_t behind = 0;
  if (r.position.defined() && r.position.is_cpu() && r.position.numel() > 0) {
    behind = r.position.max().item<std::int64_t>();
  }
  check_reach(r, farthest_pair(r, r.q.size(1), r.k.size(1), behind), "");
}

void check_horizon(const Request& r) {
  const auto& horizon = r.options.horizon;
  if (horizon.has_value()) {
    COSFORMER_CHECK(std::isfinite(*horizon) && *horizon >= kLeastHorizon, "horizon", "a finite number above 0",
                    *horizon);
  }
  if (!r.options.reweight) {
    COSFORMER_CHECK(!r.options.theta.defined(), "theta", "absent when reweight is false", "a tensor");
  } else if (!r.options.theta.defined() && horizon.has_value()) {
    check_distances(r);
  }
}

void check_position(const Request& r) {
  if (!r.position.defined() || !r.position.is_cpu() || r.position.numel() == 0) return;
  const auto least = r.position.min().item<std::int64_t>(), most = r.position.max().item<std::int64_t>();
  COSFORMER_CHECK(least >= 0, "position", "at least 0", least);
  COSFORMER_CHECK(most <= kMostPosition, "position", c10::str("at most ", kMostPosition), most);
}

// A divisor that is zero in the accumulation type would turn an empty row into NaN.
void check_divisor(const Request& r, const char* name, double divisor) {
  const bool wide = r.q.scalar_type() == at::kDouble;
  const double least = wide ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  COSFORMER_CHECK(std::isfinite(divisor) && divisor >= least, name, c10::str("a finite number of at least ", least),
                  divisor);
}

template <std::size_t kCount>
void check_name(const Request& r, const char* argument, const std::string& name,
                const std::array<const char*, kCount>& names) {
  std::string list;
  for (const char* const known : names) {
    if (name == known) return;
    list += (list.empty() ? "" : ", ") + std::string(known);
  }
  COSFORMER_CHECK(false, argument, "one of " + list, "'", name, "'");
}

void check(const Request& r) {
  check_qkv(r);
  AttentionArguments::each(
      [&r](const Field& field, const auto& x) {
        if constexpr (std::is_same_v<decltype(x), const at::Tensor&>) check_dense(r, field.name, x);
      },
      r.arguments);
  check_per_head(r, "theta", r.options.theta);
  check_per_head(r, "log_decay", r.options.log_decay);
  check_values_per_head(r);
  check_mask(r);
  check_packing(r);
  check_state(r);
  check_position(r);
  check_divisor(r, "eps", r.options.eps);
  check_name(r, "feature_map", r.options.feature_map, kFeatureMaps);
  check_name(r, "normalizer", r.options.normalizer, kNormalizers);
  check_horizon(r);
}

}  // namespace

double horizon_of(const AttentionOptions& options) {
  if (!options.reweight) return std::numeric_limits<double>::infinity();
  return options.theta.defined() ? kOwnHorizon : options.horizon.value_or(kOwnHorizon);
}

at::ScalarType accumulation_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

void check_arguments(const PlainCall& call) {
  check({call, "cosformer::attention", /*carries_state=*/false});
}

void check_arguments(const StreamCall& call) {
  check({call, "cosformer::attention_with_state", /*carries_state=*/true});
}

}  // namespace cosformer::ops
