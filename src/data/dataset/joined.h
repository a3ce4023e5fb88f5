// Several data sets as one.
#pragma once

#include <vector>

#include "data/dataset/subset.h"

namespace cosformer::data {

// The examples of all parts, one part after the other. The parts have the same classes, vocabulary and image size;
// there is at least one.
DatasetPointer joined(std::vector<DatasetPointer> parts);

}  // namespace cosformer::data
