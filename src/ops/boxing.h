// Arguments and results on the dispatcher's stack: values one by one, and records, structs that tell their fields, as
// the values of their fields in order. So a struct crosses the dispatcher, and what is added to it does too.
//
// A record has a static member `each(visit, a, b, …)`, which calls visit(Field, a.field, b.field, …) for each field.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include "ops/options.h"

namespace cosformer::ops {

template <class T>
concept Record = requires(T& x) {
  T::each([](const Field&, const auto&) {}, x);
};

// An absent tensor is undefined with us and None with the dispatcher.
inline c10::IValue to_ivalue(const at::Tensor& x) {
  return x.defined() ? c10::IValue(x) : c10::IValue();
}
inline c10::IValue to_ivalue(const std::optional<double>& x) {
  return x.has_value() ? c10::IValue(*x) : c10::IValue();
}
template <class T>
c10::IValue to_ivalue(const T& x) {
  return c10::IValue(x);
}

inline void from_ivalue(c10::IValue&& value, at::Tensor& x) {
  x = value.isNone() ? at::Tensor() : std::move(value).toTensor();
}
inline void from_ivalue(c10::IValue&& value, std::optional<double>& x) {
  x = value.isNone() ? std::nullopt : std::optional<double>(value.toDouble());
}
template <class T>
void from_ivalue(c10::IValue&& value, T& x) {
  x = std::move(value).template to<T>();
}

template <class T>
void push(torch::jit::Stack& stack, const T& x) {
  if constexpr (Record<T>) {
    T::each([&stack](const Field&, const auto& field) { push(stack, field); }, x);
  } else {
    stack.push_back(to_ivalue(x));
  }
}

// From `next` on, which goes on to what follows.
template <class T>
void take(c10::IValue*& next, T& x) {
  if constexpr (Record<T>) {
    T::each([&next](const Field&, auto& field) { take(next, field); }, x);
  } else {
    from_ivalue(std::move(*next++), x);
  }
}

// What autograd saves of a record besides tensors, which have a place of their own there: a tuple of the other values.
template <class T>
constexpr bool kIsTensor = std::is_same_v<std::remove_cvref_t<T>, at::Tensor>;

template <Record R>
c10::IValue values_of(const R& record) {
  std::vector<c10::IValue> values;
  R::each(
      [&values](const Field&, const auto& x) {
        if constexpr (!kIsTensor<decltype(x)>) values.push_back(to_ivalue(x));
      },
      record);
  return c10::ivalue::Tuple::create(std::move(values));
}

template <Record R>
void set_values(R& record, const c10::IValue& tuple) {
  const auto values = tuple.toTuple();
  std::size_t at = 0;
  R::each(
      [&](const Field&, auto& x) {
        if constexpr (!kIsTensor<decltype(x)>) from_ivalue(c10::IValue(values->elements()[at++]), x);
      },
      record);
}

// Calls an operator with these values and records.
template <class Result, class... Arguments>
Result call(const c10::OperatorHandle& op, const Arguments&... arguments) {
  torch::jit::Stack stack;
  stack.reserve(op.schema().arguments().size());
  (push(stack, arguments), ...);
  op.callBoxed(stack);
  Result result;
  c10::IValue* next = stack.data();
  take(next, result);
  return result;
}

// A function of values and records as the dispatcher's kernel: m.impl("name", boxed<function>()).
template <auto kFunction>
struct Boxed;
template <class Result, class... Arguments, Result (*kFunction)(Arguments...)>
struct Boxed<kFunction> {
  static void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const std::size_t count = op.schema().arguments().size();
    std::tuple<std::decay_t<Arguments>...> arguments;
    c10::IValue* next = stack->data() + (stack->size() - count);
    std::apply([&next](auto&... argument) { (take(next, argument), ...); }, arguments);
    torch::jit::drop(*stack, count);
    push(*stack, std::apply(kFunction, arguments));
  }
};
template <auto kFunction>
torch::CppFunction boxed() {
  return torch::CppFunction::makeFromBoxedFunction<&Boxed<kFunction>::call>();
}

}  // namespace cosformer::ops
