// The decode step: a few new tokens for each of many sequences, on the state that they carry.
#pragma once

#include "cli/bench/attention_bench.h"

namespace cosformer::cli {

// c.length new tokens for each of c.batch sequences. What limits it is the state, which is read and written once: the
// measurement's copy moves as many bytes, on as many threads, by turns with it.
Measurement prepare_decode(const BenchCase& c);

}  // namespace cosformer::cli
