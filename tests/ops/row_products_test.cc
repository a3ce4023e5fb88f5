// Products row by row: right, and the same bits for a row whatever rows are beside it.
#include "ops/cpu/row_products.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cosformer::ops {
namespace {

TEST(RowProducts, AreRightForEverySize) {
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 8, 33}) {
    for (const std::int64_t k : {1, 5, 15, 16, 17, 40, 256}) {
      for (const std::int64_t columns : {1, 3, 4, 16, 17, 258}) {
        const at::Tensor x = at::randn({rows, k}), w = at::randn({columns, k}), bias = at::randn({columns});
        const at::Tensor wanted = at::linear(x.to(at::kDouble), w.to(at::kDouble), bias.to(at::kDouble));
        // Each of k products and sums is rounded once at most.
        const at::Tensor magnitude =
            at::linear(x.abs().to(at::kDouble), w.abs().to(at::kDouble), bias.abs().to(at::kDouble));
        const at::Tensor bound = magnitude * (static_cast<double>(k + 2) * 0x1p-24);
        EXPECT_TRUE(((row_products(x, w, bias).to(at::kDouble) - wanted).abs() <= bound).all().item<bool>())
            << rows << " x " << k << " x " << columns;
        EXPECT_TRUE(at::equal(row_products(x, w), row_products(x, w, at::zeros({columns}))));
      }
    }
  }
}

TEST(RowProducts, GiveARowTheSameBitsInEveryBatch) {
  for (const auto& [columns, k] : {std::pair<std::int64_t, std::int64_t>{258, 256}, {1024, 256}, {96, 41}, {7, 1000}}) {
    const at::Tensor x = at::randn({64, k}), w = at::randn({columns, k}), bias = at::randn({columns});
    const at::Tensor all = row_products(x, w, bias);
    for (std::int64_t count = 1; count < 64; count += 3) {
      for (const std::int64_t begin : {std::int64_t{0}, (64 - count) / 2, 64 - count}) {
        EXPECT_TRUE(at::equal(row_products(x.narrow(0, begin, count), w, bias), all.narrow(0, begin, count)))
            << count << " rows from " << begin << " of " << columns << " x " << k;
      }
    }
  }
}

TEST(RowProducts, KeepTheShapeOfWhatStandsBefore) {
  const at::Tensor x = at::randn({3, 1, 8}), w = at::randn({5, 8});
  EXPECT_EQ(row_products(x, w).sizes().vec(), (std::vector<std::int64_t>{3, 1, 5}));
  EXPECT_TRUE(at::equal(row_products(x, w)[1][0], row_products(x[1][0].unsqueeze(0), w)[0]));
  EXPECT_EQ(row_products(at::zeros({0, 8}), w).numel(), 0);
}

}  // namespace
}  // namespace cosformer::ops
