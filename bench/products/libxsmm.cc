// The same products by libxsmm's kernels, made at run time for each shape.
//
// Its matrices lie in columns, so it computes the transpose: n × m = (b as n × k)·(a as k × m), where a that lies
// transposed here is its "transposed B". It scales c by 0 or 1 only: any other factor is a pass of its own over c.
#include <cstdio>
#include <cstdlib>

#include <libxsmm.h>

#include "products.h"

namespace cosformer::products {
namespace {

constexpr std::size_t kLineNumbers = 16;

struct alignas(64) Line {
  float numbers[kLineNumbers];
};

libxsmm_smmfunction make_kernel(const Case& product, std::int64_t depth, float scale) {
  const auto n = static_cast<libxsmm_blasint>(product.n), m = static_cast<libxsmm_blasint>(product.m);
  const auto a_stride = product.a_transposed ? m : static_cast<libxsmm_blasint>(product.k);
  const float alpha = 1;
  const int flags = product.a_transposed ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
  const libxsmm_smmfunction kernel = libxsmm_smmdispatch(n, m, static_cast<libxsmm_blasint>(depth), &n, &a_stride, &n,
                                                         &alpha, &scale, &flags, &prefetch);
  if (kernel == nullptr) {
    std::fprintf(stderr, "libxsmm makes no kernel for %s\n", product.name.c_str());
    std::exit(1);
  }
  return kernel;
}

}  // namespace

void add_libxsmm(const Case& product, std::vector<Contender>& contenders) {
  if (product.scale == 0 || product.scale == 1) {
    const libxsmm_smmfunction kernel = make_kernel(product, product.k, product.scale);
    contenders.push_back({"libxsmm", [=](const Operands& x) { kernel(x.b, x.a, x.c); }});
  } else {
    const libxsmm_smmfunction kernel = make_kernel(product, product.k, 1);
    const std::int64_t count = product.m * product.n;
    const float scale = product.scale;
    contenders.push_back({"libxsmm after a pass over c", [=](const Operands& x) {
                            for (std::int64_t i = 0; i < count; ++i) x.c[i] *= scale;
                            kernel(x.b, x.a, x.c);
                          }});
  }
  // In parts: where it adds to c it begins its sums with c, one chain again, so parts are made apart and then added.
  if (product.scale == 0 && product.k > kLongestSum && !product.a_transposed) {
    const libxsmm_smmfunction kernel = make_kernel(product, kLongestSum, 0);
    const std::int64_t k = product.k, n = product.n, count = product.m * n;
    std::vector<Line> lines(static_cast<std::size_t>(count) / kLineNumbers);
    contenders.push_back({"libxsmm, sums in parts", [=](const Operands& x) mutable {
                            kernel(x.b, x.a, x.c);
                            float* part = lines[0].numbers;
                            for (std::int64_t done = kLongestSum; done < k; done += kLongestSum) {
                              kernel(x.b + done * n, x.a + done, part);
                              for (std::int64_t i = 0; i < count; ++i) x.c[i] += part[i];
                            }
                          }});
  }
}

std::string libxsmm_target() {
  libxsmm_init();
  libxsmm_set_target_arch(COSFORMER_VECTOR_BYTES == 64 ? "clx" : "hsw");
  return std::string(LIBXSMM_VERSION) + ", " + libxsmm_get_target_arch();
}

}  // namespace cosformer::products
