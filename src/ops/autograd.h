// The two operators over checked arguments: their differentiable forms, and those of the device alone.
#pragma once

#include <tuple>

#include "ops/arguments.h"

namespace cosformer::ops {

using StreamResult = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // out, state_kv, state_z

at::Tensor attention_autograd(const AttentionArguments& a);
StreamResult stream_autograd(const AttentionArguments& a);
at::Tensor attention_on_device(const AttentionArguments& a);
StreamResult stream_on_device(const AttentionArguments& a);

}  // namespace cosformer::ops
