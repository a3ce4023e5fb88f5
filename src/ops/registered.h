// An operator as the dispatcher knows it: what a device or autograd registered is called. Keep it in a static.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace cosformer::ops {

template <class Signature>
auto registered(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace cosformer::ops
