// How much the device's tests do: numbers from the environment, for tools and devices that take their time.
//   COSFORMER_CUDA_CASES    random cases of a test        COSFORMER_CUDA_LONG     long sequences
//   COSFORMER_CUDA_WIDE     heads in aligned rows         COSFORMER_CUDA_LONGEST  their tokens, and those of chosen
//   shapes COSFORMER_CUDA_AGAIN    runs that must agree          COSFORMER_CUDA_NUMBERS  in the rows of a norm
#pragma once

#include <cstdlib>

namespace cosformer::kernels::cuda::testing {

inline int environment_number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}
inline int longest_length() {
  return environment_number("COSFORMER_CUDA_LONGEST", 1 << 20);
}

}  // namespace cosformer::kernels::cuda::testing
