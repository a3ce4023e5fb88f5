// The reference forms against each other: quadratic = recurrent, and the properties that define the method.
#include "kernels/reference/reference.h"

#include <gtest/gtest.h>

#include "kernels/case_count.h"
#include "kernels/verify/run_case.h"

namespace cosformer::kernels::verify {
namespace {

void expect_within(const AttentionKernels& kernels, const AttentionCase& c) {
  const CaseData data = make_data(c);
  const Yardstick yardstick = make_yardstick(c, data);
  for (const PartError& part : compare(c, yardstick, run_case(kernels, c, data, c.dtype))) {
    EXPECT_TRUE(part.within()) << kernels.name << ' ' << part.name << ": error " << part.error << ", bound "
                               << part.bound << "; " << c.describe();
  }
}

TEST(Reference, RecurrentEqualsQuadratic) {
  for (std::uint64_t seed = 1000; seed < 1000 + case_count(80); ++seed) {
    expect_within(reference::recurrent_kernels(), random_case(seed, {.max_length = 60, .max_dim = 48}));
  }
}

TEST(Reference, QuadraticInEveryDtypeIsWithinItsBound) {
  for (std::uint64_t seed = 2000; seed < 2000 + case_count(60); ++seed) {
    expect_within(reference::quadratic_kernels(), random_case(seed, {.max_length = 60, .max_dim = 48}));
  }
}

// The comparison itself must notice: a result moved by three bounds, or not a number, is refused.
TEST(Reference, ComparisonNoticesWrongResults) {
  const AttentionCase c = random_case(77, {.dtypes = {DType::kFloat32}, .max_length = 30, .max_dim = 16});
  const CaseData data = make_data(c);
  const Yardstick yardstick = make_yardstick(c, data);
  for (const NamedPart& named : result_parts()) {
    if ((yardstick.exact.*named.part).empty()) continue;
    for (const double change : {3.0, std::numeric_limits<double>::quiet_NaN()}) {
      CaseResult wrong = yardstick.exact;
      double bound = 0;
      for (const PartError& part : compare(c, yardstick, wrong)) {
        EXPECT_TRUE(part.within());
        if (std::string(part.name) == named.name) bound = part.bound;
      }
      (wrong.*named.part).back() += change * bound;
      for (const PartError& part : compare(c, yardstick, wrong)) {
        EXPECT_EQ(part.within(), std::string(part.name) != named.name) << part.name;
      }
    }
  }
}

}  // namespace
}  // namespace cosformer::kernels::verify
