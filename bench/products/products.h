// The products that a pass over a chunk is made of, and the ways to compute them that are compared.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cosformer::products {

// c [m, n] = scale·c + a·b with b [k, n], and a [m, k], or [k, m] where it lies transposed. Rows are dense.
struct Case {
  std::string name;
  std::int64_t m, n, k;
  bool a_transposed;
  float scale;
};

struct Operands {
  const float* a;
  const float* b;
  float* c;
};

struct Contender {
  std::string name;
  std::function<void(const Operands&)> multiply;
};

// Longer sums are added up in parts where c is not read: kLongestSum of body/gemm.h.
constexpr std::int64_t kLongestSum = 32;

void add_ours(const Case& product, std::vector<Contender>& contenders);
void add_highway(const Case& product, std::vector<Contender>& contenders);
void add_libxsmm(const Case& product, std::vector<Contender>& contenders);

// A loop of independent multiply-additions in registers; returns how many operations it did.
double run_fma_loop();

const char* highway_target();
std::string libxsmm_target();

}  // namespace cosformer::products
