// Names for what data hold: equal for equal data, another one when they have changed. To notice, not to prove: of much
// data only some of the content is looked at.
#pragma once

#include <string>

#include "data/corpus/corpus.h"
#include "data/tasks/task.h"

namespace cosformer::data {

// All lengths and labels, the classes, and all of the content of up to 32 MB, else examples taken evenly.
std::string fingerprint(const Dataset& dataset);

// What it holds as counts, and tokens from places taken evenly.
std::string fingerprint(const CorpusPart& part);

// All parts of them.
std::string fingerprint(const TaskData& task);
std::string fingerprint(const Corpus& corpus);

}  // namespace cosformer::data
