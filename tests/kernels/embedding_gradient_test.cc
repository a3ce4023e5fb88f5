// What a lane of the GPU's embedding gradient does, lane after lane on the host, against the sum that defines it.
#include <gtest/gtest.h>

#include "kernels/cuda/embedding_gradient_body.h"
#include "kernels/embedding_case.h"

namespace cosformer::kernels::cuda {
namespace {

using kernels::testing::EmbeddingCase;
using kernels::testing::EmbeddingData;

struct Floats {
  using Stored = float;
  static float load(float x) { return x; }
};

TEST(EmbeddingGradient, EveryTokenCountsOnce) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (int at = 0; at < 40; ++at) {
    const EmbeddingCase c = EmbeddingCase::draw(random, DType::kFloat32, 4096);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << " case " << at << ": " << c);
    const EmbeddingData data(c, random);
    const EmbeddingSizes s = embedding_sizes(c.tokens, c.width, c.rows);
    ASSERT_LE(s.window_rows, kWindowRows);
    std::vector<float> window(static_cast<std::size_t>(s.window_rows * kWarpLanes), std::nanf(""));
    std::vector<float> partial(static_cast<std::size_t>(s.parts * c.rows * c.width), std::nanf(""));
    for (std::int64_t warp = 0; warp < embedding_warps(s); ++warp) {
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        embedding_gradient_lane<Floats>(s, data.ids.data(), reinterpret_cast<const float*>(data.dy.data()),
                                        partial.data(), warp, lane, window.data());
      }
    }
    ASSERT_LE(data.error_of(partial), 1.0);
  }
}

TEST(EmbeddingGradient, PartsAreNoLargerThanWhatTheySum) {
  for (const std::int64_t tokens : {1, 1'000, 100'000, 10'000'000}) {
    for (const std::int64_t rows : {1, 33, 260, 4'096}) {
      const EmbeddingSizes s = embedding_sizes(tokens, 64, rows);
      EXPECT_TRUE(s.parts == 1 || s.parts * rows <= tokens) << tokens << ' ' << rows;
      EXPECT_GE(s.parts * s.part_tokens, tokens);
    }
  }
}

}  // namespace
}  // namespace cosformer::kernels::cuda
