// Rows that only fill up a batch change neither its loss nor its gradients.
#include "train/inputs/device_batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cosformer::train {
namespace {

data::Batch three_texts(bool pairs) {
  const auto sequences = [] {
    data::SequenceBatch s;
    s.rows = 3;
    s.width = 8;
    s.lengths = {8, 5, 6};
    for (const std::int32_t length : s.lengths) {
      for (std::int32_t at = 0; at < 8; ++at) s.tokens.push_back(at < length ? 2 + (at * length) % 7 : 0);
    }
    return s;
  };
  data::Batch batch;
  batch.labels = {0, 2, 1};
  batch.first = sequences();
  if (pairs) batch.second = sequences();
  return batch;
}

TEST(DeviceBatch, FillingRowsChangesNothing) {
  for (const bool pairs : {false, true}) {
    for (const char* attention : {"cosformer", "cosformer_plus", "softmax"}) {
      SCOPED_TRACE(std::string(attention) + (pairs ? ", pairs" : ""));
      models::ModelConfig config;
      config.width = 16;
      config.heads = 2;
      config.dropout = 0;
      config.attention.name = attention;
      config.attention.convolution = attention == std::string("cosformer_plus") ? 3 : 0;
      config.input = {10, 8, pairs, 0, 0, 1, {"a", "b", "c"}};
      at::manual_seed(3);
      models::Classifier model(config);
      const auto loss_and_gradients = [&](const DeviceBatch& batch) {
        const at::Tensor loss =
            at::cross_entropy_loss(logits_of(model, batch), batch.labels, {}, at::Reduction::Mean, kNoLabel);
        model.zero_grad();
        loss.backward();
        std::vector<at::Tensor> all{loss.detach().reshape({1})};
        for (const at::Tensor& p : model.parameters()) all.push_back(p.grad().clone().flatten());
        return at::cat(all);
      };
      const data::Batch batch = three_texts(pairs);
      const DeviceBatch filled = to_device_filled(batch, at::kCPU, 5);
      ASSERT_EQ(filled.first.content.sizes(), at::IntArrayRef({5, 8}));
      EXPECT_EQ(filled.first.mask.sum().item<std::int64_t>(), 8 + 5 + 6 + 1 + 1);
      const at::Tensor expected = loss_and_gradients(to_device(batch, at::kCPU));
      const at::Tensor got = loss_and_gradients(filled);
      EXPECT_LT((got - expected).abs().max().item<double>(), 1e-5);
      EXPECT_GT(expected.abs().max().item<double>(), 1e-2);
    }
  }
}

TEST(DeviceBatch, AFullOneHasAMaskOnlyIfItIsToBeFilled) {
  data::Batch batch = three_texts(false);
  batch.first.lengths = {8, 8, 8};
  EXPECT_FALSE(to_device(batch, at::kCPU).first.mask.defined());
  const DeviceBatch filled = to_device_filled(batch, at::kCPU, 3);
  EXPECT_TRUE(filled.first.mask.all().item<bool>());
  EXPECT_EQ(filled.labels.size(0), 3);
}

}  // namespace
}  // namespace cosformer::train
