// The two operators over checked arguments: their differentiable forms, and those of the device alone.
#pragma once

#include "ops/arguments.h"

namespace cosformer::ops {

struct StreamResult {
  at::Tensor out, state_kv, state_z;

  template <class Visit, class... Results>
  static void each(const Visit& visit, Results&... r) {
    visit(Field{"out", kRequired}, r.out...);
    visit(Field{"state_kv", kRequired}, r.state_kv...);
    visit(Field{"state_z", kRequired}, r.state_z...);
  }
};

at::Tensor attention_autograd(const AttentionArguments& a);
StreamResult stream_autograd(const AttentionArguments& a);
at::Tensor attention_on_device(const AttentionArguments& a);
StreamResult stream_on_device(const AttentionArguments& a);

}  // namespace cosformer::ops
