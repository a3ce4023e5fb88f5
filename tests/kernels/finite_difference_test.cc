// The oracle's gradients against central finite differences of the oracle's outputs, in double.
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/reference/reference.h"
#include "kernels/verify/run_case.h"

namespace cosformer::kernels::verify {
namespace {

// The scalar whose gradient the backward pass computes: Σ dout·out + Σ d_state·state_out.
double loss(const AttentionCase& c, const CaseData& data) {
  const CaseResult r = run_case(reference::quadratic_kernels(), c, data, DType::kFloat64);
  double sum = 0;
  for (std::size_t at = 0; at < r.out.size(); ++at) sum += r.out[at] * data.dout[at];
  for (std::size_t at = 0; at < r.state_kv.size(); ++at) sum += r.state_kv[at] * data.d_state_kv[at];
  for (std::size_t at = 0; at < r.state_z.size(); ++at) sum += r.state_z[at] * data.d_state_z[at];
  return sum;
}

void check_gradient(const AttentionCase& c, CaseData data, std::vector<double> CaseData::*input,
                    const std::vector<double>& gradient, const char* name) {
  std::vector<double>& x = data.*input;
  ASSERT_EQ(x.size(), gradient.size()) << name;
  const double step = 1e-6;
  for (std::size_t at = 0; at < x.size(); at += 1 + x.size() / 23) {
    const double before = x[at];
    if (c.feature_map == FeatureMap::kRelu && std::abs(before) < 2 * step) continue;  // the kink has no derivative
    x[at] = before + step;
    const double up = loss(c, data);
    x[at] = before - step;
    const double down = loss(c, data);
    x[at] = before;
    const double slope = (up - down) / (2 * step);
    // Truncation is O(step²) and rounding O(u·|loss|/step): far below this, and far below a missing term.
    EXPECT_NEAR(gradient[at], slope, 2e-6 * (1 + std::abs(slope) + std::abs(up)))
        << name << '[' << at << "] " << c.describe();
  }
}

TEST(FiniteDifferences, EveryGradientOfTheOracle) {
  for (std::uint64_t seed = 500; seed < 560; ++seed) {
    AttentionCase c = random_case(seed, {.dtypes = {DType::kFloat64}, .max_length = 7, .max_dim = 5});
    c.scale = 1;
    c.eps = 1e-3;
    const CaseData data = make_data(c);
    const CaseResult r = run_case(reference::quadratic_kernels(), c, data, DType::kFloat64);
    check_gradient(c, data, &CaseData::q, r.dq, "dq");
    check_gradient(c, data, &CaseData::k, r.dk, "dk");
    check_gradient(c, data, &CaseData::v, r.dv, "dv");
    if (c.decay) check_gradient(c, data, &CaseData::log_decay, r.d_log_decay, "d_log_decay");
    if (!c.carry_state) continue;
    check_gradient(c, data, &CaseData::state_kv, r.d_state_kv, "d_state_kv");
    check_gradient(c, data, &CaseData::state_z, r.d_state_z, "d_state_z");
  }
}

}  // namespace
}  // namespace cosformer::kernels::verify
