// Embeddings and their gradient on the device, on random shapes, against their definitions. Needs a GPU to run.
#include <gtest/gtest.h>

#include "device_memory.h"
#include "device_run.h"
#include "kernels/cuda/embedding/embedding_gradient.h"
#include "kernels/cuda/embedding/embedding_rows.h"
#include "kernels/embedding_case.h"

namespace cosformer::kernels::cuda::testing {
namespace {

using kernels::testing::EmbeddedRows;
using kernels::testing::EmbeddingCase;
using kernels::testing::EmbeddingData;

template <class Problem>
Problem problem_of(const EmbeddingCase& c) {
  Problem p;
  p.dtype = c.dtype;
  p.tokens = c.tokens;
  p.width = c.width;
  p.rows = c.rows;
  return p;
}

std::vector<std::uint8_t> run(const EmbeddingCase& c, const EmbeddingData& data, bool captured) {
  const DeviceMemory ids(data.sorted), order(data.order), dy(data.dy);
  const DeviceMemory gradient(data.sum.size() * size_of(c.dtype));
  auto p = problem_of<EmbeddingGradient>(c);
  p.ids = ids.data<std::int32_t>();
  p.order = order.data<std::int64_t>();
  p.dy = dy.data();
  p.gradient = gradient.data();
  const DeviceMemory workspace(static_cast<std::size_t>(embedding_workspace(p)) * sizeof(float));
  run_launches(captured, [&](cudaStream_t stream) { return embedding_gradient(p, workspace.data<float>(), stream); });
  return gradient.read<std::uint8_t>();
}

void expect_definition(const EmbeddingCase& c, std::mt19937& random) {
  const EmbeddingData data(c, random);
  const std::vector<std::uint8_t> first = run(c, data, false), again = run(c, data, true);
  EXPECT_LE(data.error_of(c, first), 1.0);
  EXPECT_TRUE(same_bits(first, again));
}

std::int64_t mistakes(const EmbeddingCase& c, bool onto, std::mt19937& random) {
  const EmbeddingData data(c, random);
  const EmbeddedRows rows(c, data, onto, random);
  const DeviceMemory ids(data.ids), table(rows.table), x(data.dy), y(rows.expected.size());
  auto p = problem_of<EmbeddingRows>(c);
  p.ids = ids.data<std::int64_t>();
  p.table = table.data();
  p.x = onto ? x.data() : nullptr;
  p.y = y.data();
  run_launches(false, [&](cudaStream_t stream) { return embedding_rows(p, stream); });
  return rows.mistakes_in(c, y.read<std::uint8_t>());
}

TEST(EmbeddingCuda, RowsOfRandomShapes) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (int at = 0; at < 20; ++at) {
      EmbeddingCase c = EmbeddingCase::draw(random, dtype, 50'000);
      if (at % 4 < 2) c.width = c.width / 8 * 8 + 8;  // rows of whole packs
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " case " << at << ": " << c);
      EXPECT_EQ(mistakes(c, at % 2 == 0, random), 0);
    }
  }
}

TEST(EmbeddingCuda, RandomShapes) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (int at = 0; at < 20; ++at) {
      const EmbeddingCase c = EmbeddingCase::draw(random, dtype, 50'000);
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

}  // namespace
}  // namespace cosformer::kernels::cuda::testing
