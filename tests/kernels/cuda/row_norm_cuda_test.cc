// The norms on the device, on random rows, against the definition in double. Needs a GPU to run.
#include <gtest/gtest.h>

#include "case_limits.h"
#include "device_memory.h"
#include "device_run.h"
#include "kernels/cuda/norm/row_norm.h"
#include "kernels/reference/head_arrays.h"
#include "kernels/row_norm_case.h"

namespace cosformer::kernels::cuda::testing {
namespace {

using kernels::testing::RowNormCase;
using kernels::testing::RowNormData;
using kernels::testing::RowNormResult;

// Numbers on the device, `shift` of them behind an aligned place.
DeviceMemory stored(DType dtype, const std::vector<float>& values, std::size_t shift) {
  std::vector<std::uint8_t> host((values.size() + shift) * size_of(dtype));
  auto at = static_cast<std::int64_t>(shift);
  for (const float x : values) reference::store_element(dtype, host.data(), at++, x);
  return DeviceMemory(host);
}

std::vector<double> loaded(DType dtype, const DeviceMemory& memory, std::size_t shift) {
  const std::vector<std::uint8_t> host = memory.read<std::uint8_t>();
  std::vector<double> result;
  for (std::size_t at = shift; at < host.size() / size_of(dtype); ++at) {
    result.push_back(reference::load_element<double>(dtype, host.data(), static_cast<std::int64_t>(at)));
  }
  return result;
}

// Both passes, the second time out of a captured graph; everything that is written is a NaN before.
RowNormResult run(const RowNormCase& c, const RowNormData& data, std::size_t shift, bool captured) {
  const DeviceMemory x = stored(c.x_dtype, data.x, shift), dy = stored(c.y_dtype, data.dy, shift);
  const DeviceMemory y(dy.bytes()), dx(x.bytes()), weight(data.weight), bias(data.bias);
  const DeviceMemory dweight(weight.bytes()), dbias(c.centered ? weight.bytes() : 0);
  const auto at = [&](const DeviceMemory& memory, DType dtype) {
    return static_cast<void*>(memory.data<std::uint8_t>() + shift * size_of(dtype));
  };
  RowNorm p;
  p.x_dtype = c.x_dtype;
  p.y_dtype = c.y_dtype;
  p.rows = c.rows;
  p.width = c.width;
  p.eps = c.eps;
  p.centered = c.centered;
  p.x = at(x, c.x_dtype);
  p.weight = weight.data<float>();
  const DeviceMemory workspace(static_cast<std::size_t>(row_norm_workspace_floats(p)) * sizeof(float));
  run_launches(captured, [&](cudaStream_t stream) {
    const cudaError_t status = row_norm_fwd(p, c.centered ? bias.data<float>() : nullptr, at(y, c.y_dtype), stream);
    if (status != cudaSuccess) return status;
    return row_norm_bwd(p, at(dy, c.y_dtype), at(dx, c.x_dtype), dweight.data<float>(), dbias.data<float>(),
                        workspace.data<float>(), stream);
  });
  return {loaded(c.y_dtype, y, shift), loaded(c.x_dtype, dx, shift), loaded(DType::kFloat32, dweight, 0),
          loaded(DType::kFloat32, dbias, 0)};
}

void expect_definition(const RowNormCase& c, std::mt19937& random, std::size_t shift) {
  SCOPED_TRACE(::testing::Message() << c << " shift " << shift);
  const RowNormData data(c, random);
  const RowNormResult first = run(c, data, shift, false), again = run(c, data, shift, true);
  for (const auto& part : kernels::testing::errors_of(c, data, first)) {
    EXPECT_LE(part.error, part.bound) << part.name;
  }
  EXPECT_TRUE(same_bits(first.y, again.y) && same_bits(first.dx, again.dx) && same_bits(first.dweight, again.dweight) &&
              same_bits(first.dbias, again.dbias));
}

TEST(RowNormCuda, RandomShapes) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  constexpr DType kWide = DType::kFloat32, kBrain = DType::kBFloat16, kHalf = DType::kFloat16;
  const std::pair<DType, DType> types[] = {
      {kWide, kWide}, {kWide, kBrain}, {kWide, kHalf}, {kBrain, kBrain}, {kHalf, kHalf}};
  const int numbers = environment_number("COSFORMER_CUDA_NUMBERS", 1'500'000);
  for (const auto& [x_dtype, y_dtype] : types) {
    for (int at = 0; at < 24; ++at) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " case " << at);
      RowNormCase c;
      c.x_dtype = x_dtype;
      c.y_dtype = y_dtype;
      c.centered = draw(0, 1) == 1;
      c.eps = draw(0, 1) == 1 ? 1e-6F : 1e-2F;
      // Every width in registers, then any others.
      c.width = at < 8 ? 128 * (at + 1) : at < 10 ? 32 * (at - 7) : at < 20 ? draw(1, 700) : draw(1, 9'000);
      c.rows = at % 4 == 0 ? draw(1, 9) : draw(1, numbers) / (c.width + 200);
      expect_definition(c, random, 0);
      if (at % 5 == 0) expect_definition(c, random, 1);  // rows that no vector load can read
    }
  }
}

// More rows than all blocks take at once.
TEST(RowNormCuda, ManyRows) {
  std::mt19937 random(3);
  for (const std::int64_t width : {32, 64, 128}) {
    RowNormCase c;
    c.y_dtype = DType::kBFloat16;
    c.width = width;
    c.rows = 2'000'003 / width;
    expect_definition(c, random, 0);
  }
}

TEST(RowNormCuda, NoRowsHaveNoGradient) {
  std::mt19937 random(4);
  for (const std::int64_t width : {128, 50}) {
    RowNormCase c;
    c.rows = 0;
    c.width = width;
    const RowNormResult result = run(c, RowNormData(c, random), 0, false);
    EXPECT_TRUE(same_bits(result.dweight, std::vector<double>(static_cast<std::size_t>(width), 0.0)));
    EXPECT_TRUE(same_bits(result.dbias, std::vector<double>(static_cast<std::size_t>(width), 0.0)));
  }
}

TEST(RowNormCuda, RefusesWhatItCannotDo) {
  RowNorm p;
  p.rows = 1;
  EXPECT_EQ(row_norm_fwd(p, nullptr, nullptr, nullptr), cudaErrorInvalidValue);  // no width
  p.width = 8;
  p.x_dtype = DType::kBFloat16;  // written as float32
  EXPECT_EQ(row_norm_fwd(p, nullptr, nullptr, nullptr), cudaErrorInvalidValue);
  p.x_dtype = p.y_dtype = DType::kFloat64;
  EXPECT_EQ(row_norm_bwd(p, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace cosformer::kernels::cuda::testing
