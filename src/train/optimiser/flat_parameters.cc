#include "train/optimiser/flat_parameters.h"

#include <ATen/ATen.h>

namespace cosformer::train {
namespace {

// Parts begin at multiples of 256 bytes, as if each had been allocated by itself.
constexpr std::int64_t kAlignment = 64;

bool decays(const std::string& name, const at::Tensor& parameter) {
  return parameter.dim() >= 2 && name.find("convolution") == std::string::npos;
}

}  // namespace

FlatParameters::FlatParameters(torch::nn::Module& model) {
  at::NoGradGuard no_grad;
  std::array<std::int64_t, 2> sizes{};
  at::TensorOptions options;
  for (const auto& item : model.named_parameters()) {
    const at::Tensor& p = item.value();
    const std::size_t group = decays(item.key(), p) ? 0 : 1;
    parts_.push_back({item.key(), group, sizes[group], p.numel(), p.sizes().vec()});
    sizes[group] += (p.numel() + kAlignment - 1) / kAlignment * kAlignment;
    options = p.options();
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    groups_[group] = {at::zeros({sizes[group]}, options), at::zeros({sizes[group]}, options), group == 0, {}};
  }
  std::size_t number = 0;
  for (auto& item : model.named_parameters()) {
    const Part& part = parts_[number++];
    const Group& group = groups_[part.group];
    const at::Tensor place = group.values.narrow(0, part.begin, part.size).view(part.shape);
    place.copy_(item.value());
    item.value().set_data(place);
    item.value().mutable_grad() = group.gradients.narrow(0, part.begin, part.size).view(part.shape);
  }
}

void FlatParameters::set_rates(const std::function<double(const std::string&)>& rate_of) {
  for (Group& group : groups_) group.rates = at::ones_like(group.values).requires_grad_(false);
  for (const Part& part : parts_) groups_[part.group].rates.narrow(0, part.begin, part.size).fill_(rate_of(part.name));
}

void FlatParameters::zero_gradients() {
  for (const Group& group : groups_) group.gradients.zero_();
}

at::Tensor FlatParameters::clip(double most) {
  at::Tensor squares;
  for (const Group& group : groups_) {
    const at::Tensor square = at::dot(group.gradients, group.gradients);
    squares = squares.defined() ? squares + square : square;
  }
  const at::Tensor norm = squares.sqrt();
  if (most > 0) {
    const at::Tensor factor = (most / (norm + 1e-6)).clamp_max(1);
    for (const Group& group : groups_) group.gradients.mul_(factor);
  }
  return norm;
}

nn::NamedTensors FlatParameters::named_parts(std::size_t number, const at::Tensor& flat,
                                             const std::string& prefix) const {
  nn::NamedTensors tensors;
  for (const Part& part : parts_) {
    if (part.group == number) {
      tensors.emplace_back(prefix + "." + part.name, flat.narrow(0, part.begin, part.size).view(part.shape));
    }
  }
  return tensors;
}

}  // namespace cosformer::train
