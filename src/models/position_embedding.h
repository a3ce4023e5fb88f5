// Positions that are added to embedded tokens: learned ones, or sines.
#pragma once

#include <cstdint>
#include <string>

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

namespace cosformer::models {

// Its weights drawn with that deviation.
torch::nn::Embedding token_embedding(std::int64_t vocabulary, std::int64_t width, double deviation);

class PositionEmbedding {
 public:
  // `kind` as in model.positions; of any but "learned" and "sinusoidal" nothing is added. Learned ones become the
  // owner's parameter "position_embedding".
  PositionEmbedding(torch::nn::Module& owner, const std::string& kind, std::int64_t places, std::int64_t width,
                    double deviation);

  bool adds() const { return learned_.defined() || sines_.defined(); }

  // x [B, T, width] at `positions`, B·T numbers; undefined: each row from 0 on.
  at::Tensor add(const at::Tensor& x, const at::Tensor& positions = {});

 private:
  at::Tensor learned_, sines_;
};

}  // namespace cosformer::models
