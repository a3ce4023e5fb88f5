// The kernels' own products, and the loop that shows what the multipliers can do.
#include "kernels/cpu/body/gemm.h"
#include "products.h"

namespace cosformer::products {

namespace cpu = kernels::cpu;

namespace {

template <cpu::Layout kLayout>
void multiply(const Case& p, const Operands& x) {
  const cpu::Index a_stride = kLayout == cpu::Layout::kColumns ? p.m : p.k;
  cpu::multiply_full<kLayout, float>({x.a, a_stride, x.b, p.n, x.c, p.n, p.m, p.n, p.k, p.scale, cpu::Band::kAll});
}

}  // namespace

void add_ours(const Case& product, std::vector<Contender>& contenders) {
  static_assert(kLongestSum == cpu::kLongestSum<float>);
  const auto by = product.a_transposed ? multiply<cpu::Layout::kColumns> : multiply<cpu::Layout::kRows>;
  contenders.push_back({"ours", [=](const Operands& x) { by(product, x); }});
}

double run_fma_loop() {
  constexpr int kSums = COSFORMER_TILE_REGISTERS >= 24 ? 20 : 10;
  constexpr int kSteps = 20000;
  cpu::Vector<float> sums[kSums];
  COSFORMER_UNROLL for (int i = 0; i < kSums; ++i) sums[i] = cpu::Vector<float>{} + static_cast<float>(i);
  const cpu::Vector<float> factor = cpu::Vector<float>{} + 0.999F, term = cpu::Vector<float>{} + 0.001F;
  for (int step = 0; step < kSteps; ++step) {
    __asm__ volatile("" : : : "memory");
    COSFORMER_UNROLL for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + term;
  }
  cpu::Vector<float> total = {};
  COSFORMER_UNROLL for (int i = 0; i < kSums; ++i) total += sums[i];
  __asm__ volatile("" : : "m"(total));
  return 2.0 * kSums * kSteps * static_cast<double>(cpu::kLanes<float>);
}

}  // namespace cosformer::products
