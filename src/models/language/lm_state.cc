#include "models/language/lm_state.h"

#include <utility>

#include <ATen/ATen.h>

namespace cosformer::models {
namespace {

template <class Visit>
void for_each_tensor(LmState& state, const Visit& visit) {
  for (nn::LayerState& layer : state.layers) {
    if (layer.convolution.defined()) visit(layer.convolution);
    for (at::Tensor& tensor : layer.mechanism.tensors) visit(tensor);
  }
}

std::string convolution_name(std::size_t layer) {
  return "layer_" + std::to_string(layer) + ".convolution";
}

std::string mechanism_name(std::size_t layer, std::size_t part) {
  return "layer_" + std::to_string(layer) + ".mechanism_" + std::to_string(part);
}

}  // namespace

void LmState::detach() {
  for_each_tensor(*this, [](at::Tensor& tensor) { tensor = tensor.detach(); });
}

void LmState::restart(std::int64_t row) {
  const auto clear = [row](at::Tensor& tensor) {
    tensor = tensor.clone();
    tensor.select(0, row).zero_();
  };
  for (nn::LayerState& layer : layers) {
    if (layer.convolution.defined()) clear(layer.convolution);
    if (layer.mechanism.length > 0) continue;  // a cache: the clock tells which part of it is the row's
    for (at::Tensor& tensor : layer.mechanism.tensors) clear(tensor);
  }
  clock.restart(row);
}

LmState LmState::repeated(std::int64_t count) const {
  LmState many = *this;
  for_each_tensor(many, [count](at::Tensor& tensor) {
    std::vector<std::int64_t> times(static_cast<std::size_t>(tensor.dim()), 1);
    times[0] = count;
    tensor = tensor.repeat(times);
  });
  many.clock = nn::StreamClock(count, clock.position().device(), clock.consumed().at(0));
  return many;
}

LmState LmState::joined(const std::vector<const LmState*>& states) {
  LmState all = *states.front();
  std::vector<std::int64_t> consumed;
  std::vector<std::vector<at::Tensor>> parts;  // of each tensor, one of each state
  for (const LmState* state : states) {
    consumed.insert(consumed.end(), state->clock.consumed().begin(), state->clock.consumed().end());
    std::size_t at = 0;
    LmState copy = *state;
    for_each_tensor(copy, [&](at::Tensor& tensor) {
      if (parts.size() <= at) parts.emplace_back();
      parts[at++].push_back(tensor);
    });
  }
  std::size_t at = 0;
  for_each_tensor(all, [&](at::Tensor& tensor) { tensor = at::cat(parts[at++]); });
  all.clock = nn::StreamClock(std::move(consumed), all.clock.position().device());
  return all;
}

LmState LmState::rows(const std::vector<std::int64_t>& which) const {
  LmState some = *this;
  std::vector<std::int64_t> consumed;
  for (const std::int64_t row : which) consumed.push_back(clock.consumed().at(static_cast<std::size_t>(row)));
  const at::Tensor index = at::tensor(which, at::kLong).to(clock.position().device());
  for_each_tensor(some, [&](at::Tensor& tensor) { tensor = tensor.index_select(0, index); });
  some.clock = nn::StreamClock(std::move(consumed), clock.position().device());
  return some;
}

bool LmState::has_cache() const {
  for (const nn::LayerState& layer : layers) {
    if (layer.mechanism.length > 0) return true;
    for (const at::Tensor& tensor : layer.mechanism.tensors) {
      if (is_cache(tensor)) return true;
    }
  }
  return false;
}

std::uint64_t LmState::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [name, tensor] : tensors()) {
    sum += static_cast<std::uint64_t>(tensor.numel()) * static_cast<std::uint64_t>(tensor.element_size());
  }
  return sum;
}

nn::NamedTensors LmState::tensors() const {
  nn::NamedTensors all;
  for (std::size_t at = 0; at < layers.size(); ++at) {
    const nn::MechanismState& mechanism = layers[at].mechanism;
    if (layers[at].convolution.defined()) all.emplace_back(convolution_name(at), layers[at].convolution);
    for (std::size_t part = 0; part < mechanism.tensors.size(); ++part) {
      const at::Tensor& tensor = mechanism.tensors[part];
      all.emplace_back(mechanism_name(at, part), mechanism.length > 0 ? tensor.narrow(2, 0, mechanism.length) : tensor);
    }
  }
  return all;
}

void LmState::replace(const std::function<at::Tensor(const std::string& name, const at::Tensor& like)>& tensor) {
  for (std::size_t at = 0; at < layers.size(); ++at) {
    at::Tensor& convolution = layers[at].convolution;
    if (convolution.defined()) convolution = tensor(convolution_name(at), convolution);
    nn::MechanismState& mechanism = layers[at].mechanism;
    for (std::size_t part = 0; part < mechanism.tensors.size(); ++part) {
      at::Tensor& place = mechanism.tensors[part];
      const bool grows = is_cache(place);
      place = tensor(mechanism_name(at, part), place);
      if (grows) mechanism.length = place.size(2);
    }
  }
}

}  // namespace cosformer::models
