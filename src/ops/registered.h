// An operator as the dispatcher knows it: what a device or autograd registered is called. Keep it in a static.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace cosformer::ops {

inline c10::OperatorHandle operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

template <class Signature>
auto registered(const char* name) {
  return operator_named(name).typed<Signature>();
}

}  // namespace cosformer::ops
