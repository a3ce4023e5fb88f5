#include "kernels/cpu/products/row_products.h"

#include <string_view>

#include "kernels/cpu/attention.h"

namespace cosformer::kernels::cpu {
namespace {

// What differs from "avx512" only in bf16 problems has no products of its own.
MultiplyRows choice() {
  [[maybe_unused]] const std::string_view name = chosen_kernels().name;
#if defined(COSFORMER_HAVE_AVX512)
  if (name.starts_with("avx512") || name.starts_with("amx")) return kMultiplyRowsAvx512;
#endif
#if defined(COSFORMER_HAVE_AVX2)
  if (name != "baseline" && name != "portable") return kMultiplyRowsAvx2;
#endif
#if defined(COSFORMER_HAVE_PORTABLE)
  return kMultiplyRowsPortable;
#else
  return kMultiplyRowsBaseline;
#endif
}

}  // namespace

void multiply_rows(const RowProducts& products, std::int64_t begin, std::int64_t end) {
  static const MultiplyRows chosen = choice();
  chosen(products, begin, end);
}

}  // namespace cosformer::kernels::cpu
