// The short convolution on the device, on random shapes, against its definition. Needs a GPU to run.
#include <gtest/gtest.h>

#include "device_memory.h"
#include "device_run.h"
#include "kernels/cuda/convolution/short_convolution.h"
#include "kernels/short_convolution_case.h"

namespace cosformer::kernels::cuda::testing {
namespace {

using kernels::testing::ConvolutionCase;
using kernels::testing::ConvolutionData;

struct Results {
  std::vector<std::uint8_t> y, reversed;
  std::vector<float> partial;
  std::int64_t parts = 0;
};

Results run(const ConvolutionCase& c, const ConvolutionData& data, bool captured) {
  const DeviceMemory x(data.x), dy(data.dy), weight(data.weight);
  const auto bytes = static_cast<std::size_t>(c.batch * c.time * c.channels) * size_of(c.dtype);
  const DeviceMemory y(bytes), reversed(bytes);
  ShortConvolution p;
  p.dtype = c.dtype;
  p.batch = c.batch;
  p.time = c.time;
  p.channels = c.channels;
  p.width = c.width;
  p.before = c.before;
  p.x = {x.data(), c.batch_stride(), c.time_stride()};
  const TokenView slopes{dy.data(), c.batch_stride(), c.time_stride()};
  const std::int64_t parts = weight_parts(p);
  const DeviceMemory partial(static_cast<std::size_t>(parts * c.width * c.channels) * sizeof(float));
  run_launches(captured, [&](cudaStream_t stream) {
    cudaError_t status = short_convolution(p, weight.data<float>(), false, y.data(), stream);
    if (status == cudaSuccess) status = short_convolution(p, weight.data<float>(), true, reversed.data(), stream);
    if (status != cudaSuccess) return status;
    return short_convolution_weight_gradient(p, slopes, partial.data<float>(), stream);
  });
  return {y.read<std::uint8_t>(), reversed.read<std::uint8_t>(), partial.read<float>(), parts};
}

TEST(ShortConvolutionCuda, RandomShapes) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (int at = 0; at < 12; ++at) {
      const ConvolutionCase c = ConvolutionCase::draw(random, dtype, at % 3 > 0);
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " case " << at << ": " << c);
      const ConvolutionData data(c, random);
      const Results first = run(c, data, false), again = run(c, data, true);
      EXPECT_LE(data.error_of(c, false, first.y.data()), 1.0);
      EXPECT_LE(data.error_of(c, true, first.reversed.data()), 1.0);
      EXPECT_LE(data.error_of_weights(c, first.partial, first.parts), 1.0);
      EXPECT_TRUE(same_bits(first.y, again.y) && same_bits(first.reversed, again.reversed) &&
                  same_bits(first.partial, again.partial));
    }
  }
}

}  // namespace
}  // namespace cosformer::kernels::cuda::testing
