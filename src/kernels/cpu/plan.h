// How a pass is divided into phases and items, and what memory it needs. Compiled once, with baseline flags.
#pragma once

#include "kernels/attention.h"

namespace cosformer::kernels::cpu {

Schedule plan_attention_fwd(const AttentionProblem& problem, int threads, std::int64_t vector_bytes, std::int64_t chunk,
                            bool half_products);
Schedule plan_attention_bwd(const AttentionProblem& problem, int threads, std::int64_t vector_bytes, std::int64_t chunk,
                            bool half_products);

}  // namespace cosformer::kernels::cpu
