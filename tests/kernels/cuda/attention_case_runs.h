// Cases of the operator beside the float64 oracle: prepared, run on the device, compared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/verify/run_case.h"

namespace cosformer::kernels::cuda::testing {

struct Prepared {
  verify::AttentionCase c;
  verify::CaseData data;
  verify::Yardstick yardstick;
};

// The oracles are slow and independent of each other: one thread for each.
std::vector<Prepared> prepare(const std::vector<verify::AttentionCase>& cases);

// How close to its bound each part came, over all cases.
std::map<std::string, double>& worst_ratios();

// Directly and out of a captured graph: within the bounds, and the same bits.
void run_cases(const std::vector<verify::AttentionCase>& cases);

std::vector<verify::AttentionCase> random_cases(int count, std::uint64_t first_seed, const verify::CaseLimits& limits);

}  // namespace cosformer::kernels::cuda::testing
