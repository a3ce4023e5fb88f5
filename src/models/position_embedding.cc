#include "models/position_embedding.h"

#include <ATen/ATen.h>

#include "nn/embedding.h"
#include "nn/positions/positions.h"

namespace cosformer::models {

torch::nn::Embedding token_embedding(std::int64_t vocabulary, std::int64_t width, double deviation) {
  torch::nn::Embedding embedding(vocabulary, width);
  const at::NoGradGuard no_grad;
  embedding->weight.normal_(0, deviation);
  return embedding;
}

PositionEmbedding::PositionEmbedding(torch::nn::Module& owner, const std::string& kind, std::int64_t places,
                                     std::int64_t width, double deviation) {
  if (kind == "learned") {
    learned_ = owner.register_parameter("position_embedding", at::empty({places, width}).normal_(0, deviation));
  } else if (kind == "sinusoidal") {
    sines_ = nn::sinusoidal_table(places, width);
  }
}

at::Tensor PositionEmbedding::add(const at::Tensor& x, const at::Tensor& positions) {
  if (!adds()) return x;
  if (sines_.defined() && sines_.device() != x.device()) sines_ = sines_.to(x.device());
  const at::Tensor& table = learned_.defined() ? learned_ : sines_;
  if (!positions.defined()) return x + table.narrow(0, 0, x.size(1));
  return nn::add_embedded(x, table, positions);
}

}  // namespace cosformer::models
