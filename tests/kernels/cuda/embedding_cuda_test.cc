// The gradient of embeddings on the device, on random shapes, against the definition in double. Needs a GPU to run.
#include <gtest/gtest.h>

#include "device_memory.h"
#include "device_run.h"
#include "kernels/cuda/embedding_gradient.h"
#include "kernels/embedding_case.h"

namespace cosformer::kernels::cuda::testing {
namespace {

using kernels::testing::EmbeddingCase;
using kernels::testing::EmbeddingData;

std::vector<float> run(const EmbeddingCase& c, const EmbeddingData& data, bool captured) {
  const DeviceMemory ids(data.ids), dy(data.dy);
  EmbeddingGradient p;
  p.dtype = c.dtype;
  p.tokens = c.tokens;
  p.width = c.width;
  p.rows = c.rows;
  p.ids = ids.data<std::int64_t>();
  p.dy = dy.data();
  const DeviceMemory partial(static_cast<std::size_t>(embedding_parts(p) * c.rows * c.width) * sizeof(float));
  run_launches(captured, [&](cudaStream_t stream) { return embedding_gradient(p, partial.data<float>(), stream); });
  return partial.read<float>();
}

void expect_definition(const EmbeddingCase& c, std::mt19937& random) {
  const EmbeddingData data(c, random);
  const std::vector<float> first = run(c, data, false), again = run(c, data, true);
  EXPECT_LE(data.error_of(first), 1.0);
  EXPECT_TRUE(same_bits(first, again));
}

TEST(EmbeddingCuda, RandomShapes) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (int at = 0; at < 20; ++at) {
      const EmbeddingCase c = EmbeddingCase::draw(random, dtype, kMostEmbeddingRows);
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " case " << at << ": " << c);
      expect_definition(c, random);
    }
  }
}

// As a step of training has them: pixels or bytes, and many tokens.
TEST(EmbeddingCuda, ManyTokens) {
  std::mt19937 random(5);
  EmbeddingCase c;
  c.tokens = 131'072;
  c.width = 64;
  c.rows = 260;
  expect_definition(c, random);
}

TEST(EmbeddingCuda, RefusesLargerTables) {
  EmbeddingGradient p;
  p.width = 8;
  p.rows = kMostEmbeddingRows + 1;
  EXPECT_EQ(embedding_gradient(p, nullptr, nullptr), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace cosformer::kernels::cuda::testing
