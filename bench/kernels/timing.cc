#include "timing.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/cuda/device_memory.h"

namespace cosformer::kernels::cuda::testing {

double median_ms(const std::function<void(cudaStream_t)>& call, int repeats) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  std::vector<cudaEvent_t> events(static_cast<std::size_t>(repeats) + 1);
  for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "cudaEventCreate");
  // Hundreds of watts above what the device may draw on average last some milliseconds: the one before must not decide.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  for (int i = 0; i < 3; ++i) call(stream);
  for (int i = 0; i < repeats; ++i) {
    check(cudaEventRecord(events[static_cast<std::size_t>(i)], stream), "cudaEventRecord");
    call(stream);
  }
  check(cudaEventRecord(events.back(), stream), "cudaEventRecord");
  check(cudaStreamSynchronize(stream), "timed calls");
  std::vector<float> times(static_cast<std::size_t>(repeats));
  for (std::size_t i = 0; i < times.size(); ++i) {
    check(cudaEventElapsedTime(&times[i], events[i], events[i + 1]), "cudaEventElapsedTime");
  }
  for (cudaEvent_t event : events) cudaEventDestroy(event);
  cudaStreamDestroy(stream);
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[static_cast<std::size_t>(repeats / 2)];
}

double copy_rate() {
  const std::size_t bytes = std::size_t{1} << 30;
  const DeviceMemory from(bytes), to(bytes);
  const double ms = median_ms(
      [&](cudaStream_t stream) {
        check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream), "copy");
      },
      15);
  return 2.0 * static_cast<double>(bytes) / ms;
}

}  // namespace cosformer::kernels::cuda::testing
