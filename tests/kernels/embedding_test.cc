// What lanes of the GPU's embedding and of its gradient do, one after the other on the host, against their definitions.
#include <cstring>

#include <gtest/gtest.h>

#include "kernels/cuda/embedding/embedding_gradient_body.h"
#include "kernels/cuda/embedding/embedding_rows_body.h"
#include "kernels/embedding_case.h"

namespace cosformer::kernels::cuda {
namespace {

using kernels::testing::EmbeddedRows;
using kernels::testing::EmbeddingCase;
using kernels::testing::EmbeddingData;

TEST(EmbeddingGradient, EveryTokenCountsOnce) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (int at = 0; at < 60; ++at) {
    const EmbeddingCase c = EmbeddingCase::draw(random, DType::kFloat32, 50'000);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << " case " << at << ": " << c);
    const EmbeddingData data(c, random);
    std::vector<std::uint8_t> gradient(data.sum.size() * sizeof(float));
    std::vector<std::int32_t> ids = data.sorted;
    std::vector<float> from(static_cast<std::size_t>(c.tokens * c.width));
    if (!from.empty()) std::memcpy(from.data(), data.dy.data(), data.dy.size());
    bool ordered = false;
    for (std::int64_t tokens = c.tokens, chunks = 0; tokens > 0; tokens = chunks > 1 ? 2 * chunks : 0) {
      chunks = embedding_chunks(tokens);
      std::vector<float> edges(static_cast<std::size_t>(chunks * 2 * c.width), std::nanf(""));
      std::vector<std::int32_t> edge_ids(static_cast<std::size_t>(chunks * 2), -1);
      const EmbeddingLevel<float, float> level{tokens,
                                               c.width,
                                               c.rows,
                                               ids.data(),
                                               ordered ? nullptr : data.order.data(),
                                               from.data(),
                                               reinterpret_cast<float*>(gradient.data()),
                                               edges.data(),
                                               edge_ids.data()};
      for (std::int64_t warp = 0; warp < chunks * embedding_slices(c.width); ++warp) {
        for (int lane = 0; lane < kWarpLanes; ++lane) sum_chunk_lane<StoredFloats, StoredFloats>(level, warp, lane);
      }
      ids = edge_ids;
      from = edges;
      ordered = true;
    }
    ASSERT_LE(data.error_of(c, gradient), 1.0);
  }
}

template <int kLanes>
void expect_rows(EmbeddingCase c, bool onto, std::mt19937& random) {
  c.width = c.width / kLanes * kLanes + kLanes;
  const EmbeddingData data(c, random);
  const EmbeddedRows rows(c, data, onto, random);
  std::vector<std::uint8_t> y(rows.expected.size());
  const RowsToEmbed<float> p{c.tokens,
                             c.width,
                             c.rows,
                             data.ids.data(),
                             reinterpret_cast<const float*>(rows.table.data()),
                             onto ? reinterpret_cast<const float*>(data.dy.data()) : nullptr,
                             reinterpret_cast<float*>(y.data())};
  // Some more than there are, as a launch has them.
  for (std::int64_t piece = 0; piece < c.tokens * c.width / kLanes + 100; ++piece)
    embed_piece<StoredFloats, kLanes>(p, piece);
  EXPECT_EQ(rows.mistakes_in(c, y), 0);
}

TEST(EmbeddingRows, AreThoseOfTheTable) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (int at = 0; at < 40; ++at) {
    const EmbeddingCase c = EmbeddingCase::draw(random, DType::kFloat32, 4096);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << " case " << at << ": " << c);
    expect_rows<1>(c, at % 2 == 0, random);
    expect_rows<4>(c, at % 2 == 0, random);
  }
}

}  // namespace
}  // namespace cosformer::kernels::cuda
