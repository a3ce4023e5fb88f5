#include "nn/row_products.h"

#include <utility>

#include <ATen/ATen.h>

#include "nn/autocast.h"
#include "ops/cpu/row_products.h"

namespace cosformer::nn {
namespace {

thread_local bool active = false;

}  // namespace

RowByRow::RowByRow(bool wanted) : before_(std::exchange(active, active || wanted)) {}

RowByRow::~RowByRow() {
  active = before_;
}

bool RowByRow::is_active() {
  return active;
}

bool goes_row_by_row(const at::Tensor& x, const at::Tensor& weight) {
  return active && !at::GradMode::is_enabled() && x.device().is_cpu() && x.scalar_type() == at::kFloat &&
         weight.scalar_type() == at::kFloat && !is_autocast(x);
}

at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (goes_row_by_row(x, weight)) return ops::row_products(x, weight, bias);
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

}  // namespace cosformer::nn
