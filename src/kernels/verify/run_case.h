// Runs an implementation on a case and holds its results against the oracle.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/verify/attention_case.h"

namespace cosformer::kernels::verify {

// All results as dense float64 arrays; empty where the case has no such thing.
struct CaseResult {
  std::vector<double> out, state_kv, state_z;
  std::vector<double> dq, dk, dv, d_state_kv, d_state_z, d_log_decay;
};

// Runs forward and backward in `dtype`, memory poisoned with NaN beforehand, on `threads` threads.
CaseResult run_case(const AttentionKernels& kernels, const AttentionCase& c, const CaseData& data, DType dtype,
                    int threads = 1);

// The parts of a result by name, in the order they are reported.
struct NamedPart {
  const char* name;
  std::vector<double> CaseResult::*part;
};
const std::vector<NamedPart>& result_parts();

// What a case's results are measured with.
struct Yardstick {
  CaseResult exact;               // float64, by the definition
  CaseResult magnitudes;          // how large the summed terms were
  std::vector<CaseResult> naive;  // the naive twins in the case's dtype
};

Yardstick make_yardstick(const AttentionCase& c, const CaseData& data);

// The same in linear time by the recurrent forms, where the sequence is too long for the quadratic one.
Yardstick make_long_yardstick(const AttentionCase& c, const CaseData& data);

struct PartError {
  const char* name = "";
  double error = 0;  // largest absolute difference from the oracle; NaN where a result is not a number
  double bound = 0;  // max(2 · error of the worse naive twin, 3 roundings of the largest term: two factors, one result)
  bool within() const { return error <= bound; }
};

std::vector<PartError> compare(const AttentionCase& c, const Yardstick& yardstick, const CaseResult& result);

// Runs all phases of a pass. `Pass` is called as pass(Work) for each item range.
void run_phases(const Schedule& schedule, int threads, const std::function<void(const Work&)>& pass);

}  // namespace cosformer::kernels::verify
