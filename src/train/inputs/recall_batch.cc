#include "train/inputs/recall_batch.h"

#include <stdexcept>

#include <ATen/ATen.h>

namespace cosformer::train {

MaskedInputs recall_inputs(const data::LmBatch& batch, std::int64_t most, at::Device device) {
  if (batch.predictions > most) throw std::invalid_argument("a batch has more queries than there are places for");
  std::vector<std::int64_t> places, targets;
  for (std::size_t at = 0; at < batch.targets.size(); ++at) {
    if (batch.targets[at] == data::kNoTarget) continue;
    places.push_back(static_cast<std::int64_t>(at));
    targets.push_back(batch.targets[at]);
  }
  places.resize(static_cast<std::size_t>(most), 0);
  targets.resize(static_cast<std::size_t>(most), data::kNoTarget);
  return {at::tensor(batch.inputs, at::kInt).view({batch.rows, batch.width}).to(device),
          at::tensor(places).to(device),
          at::tensor(targets).unsqueeze(0).to(device),
          {},
          {}};
}

}  // namespace cosformer::train
