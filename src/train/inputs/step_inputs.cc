#include "train/inputs/step_inputs.h"

namespace cosformer::train {
namespace {

struct Tensors {
  using List = std::vector<at::Tensor*>;
  List operator()(DeviceBatch& b) const {
    return {&b.first.content, &b.first.mask, &b.second.content, &b.second.mask, &b.labels, &b.symmetries};
  }
  List operator()(LanguageInputs& b) const { return {&b.tokens, &b.targets, &b.cu_seqlens}; }
  List operator()(MaskedInputs& b) const { return {&b.tokens, &b.places, &b.targets, &b.cu_seqlens, &b.present}; }
  List operator()(TextToTextInputs& b) const { return {&b.source.tokens, &b.source.mask, &b.inputs, &b.targets}; }
};

}  // namespace

std::vector<at::Tensor*> tensors_of(StepInputs& inputs) {
  return std::visit(Tensors{}, inputs);
}

}  // namespace cosformer::train
