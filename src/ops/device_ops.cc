#include "ops/device_ops.h"

#include <fmt/core.h>
#include <torch/library.h>

#include "ops/boxing.h"
#include "ops/registered.h"
#include "ops/schema.h"

namespace cosformer::ops {

ForwardResult call_fwd(const AttentionArguments& a, bool for_backward) {
  static const c10::OperatorHandle op = operator_named("cosformer::_attention_fwd");
  return call<ForwardResult>(op, a, for_backward);
}

BackwardResult call_bwd(const BackwardInputs& inputs, const AttentionArguments& a) {
  static const c10::OperatorHandle op = operator_named("cosformer::_attention_bwd");
  return call<BackwardResult>(op, inputs, a);
}

at::Tensor empty_denominators(const AttentionArguments& a) {
  const auto options = a.q.options().dtype(accumulation_type(a.q.scalar_type()));
  if (a.options.normalizer == "none") return at::empty({0}, options);
  return at::empty({a.q.size(0), a.q.size(2), a.q.size(1)}, options).transpose(1, 2);
}

TORCH_LIBRARY_FRAGMENT(cosformer, m) {
  const std::string arguments = schema_of(AttentionArguments());
  m.def(fmt::format("_attention_fwd({}, bool for_backward) -> ({})", arguments, schema_of(ForwardResult())).c_str());
  m.def(fmt::format("_attention_bwd({}, {}) -> ({})", schema_of(BackwardInputs()), arguments,
                    schema_of(BackwardResult(), "d_"))
            .c_str());
}

}  // namespace cosformer::ops
