// All parameters of a model laid end to end, and their gradients likewise: clipping, the optimiser and an exchange
// between machines then are a few operations on long vectors instead of some on each tensor.
#pragma once

#include <array>
#include <functional>
#include <string>

#include <torch/nn/module.h>

#include "nn/tensor_file.h"

namespace cosformer::train {

class FlatParameters {
 public:
  // Moves the parameters' storage; the model must already be on its device, and nobody may replace its parameters or
  // gradients later. Matrices are subject to weight decay, vectors (biases, norms, rates) are not.
  explicit FlatParameters(torch::nn::Module& model);

  struct Group {
    at::Tensor values, gradients;
    bool decays = false;
    at::Tensor rates = {};  // factors of the learning rate; undefined: all are 1
  };
  const std::array<Group, 2>& groups() const { return groups_; }

  // A factor of the learning rate for each parameter, by its name.
  void set_rates(const std::function<double(const std::string& name)>& rate_of);

  void zero_gradients();
  // The norm of all gradients together; scales them down to `most` where that is above 0. Nothing waits for the device.
  at::Tensor clip(double most);

  // `flat`, laid out like group `number`, as tensors "PREFIX.parameter's name".
  nn::NamedTensors named_parts(std::size_t number, const at::Tensor& flat, const std::string& prefix) const;

 private:
  struct Part {
    std::string name;
    std::size_t group = 0;
    std::int64_t begin = 0, size = 0;
    std::vector<std::int64_t> shape;
  };
  std::vector<Part> parts_;
  std::array<Group, 2> groups_;
};

}  // namespace cosformer::train
