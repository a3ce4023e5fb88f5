// The differentiable forms of the two operators, over checked arguments.
#pragma once

#include <tuple>

#include "ops/arguments.h"

namespace cosformer::ops {

using StreamResult = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // out, state_kv, state_z

at::Tensor attention_autograd(const AttentionArguments& a);
StreamResult stream_autograd(const AttentionArguments& a);

}  // namespace cosformer::ops
