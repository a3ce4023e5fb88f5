// Training, validation and test parts of a generated task, kept as three files in a folder: generated once, read
// afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "data/dataset/array_dataset.h"

namespace cosformer::data {

struct Splits {
  std::shared_ptr<const ArrayDataset> train, valid, test;
};

// Called from the generating call's own thread, with done rising to total. What it throws ends the generation.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Opens FOLDER/NAME-train.data, -valid.data and -test.data. When one is missing (never made, or its making was
// interrupted), calls `generate`, writes all three (the folder is made if needed) and opens them. Throws UserError when
// a file that is there comes from other options than `provenance` says: it is never replaced.
Splits open_or_generate(const std::string& folder, const std::string& name, const std::string& provenance,
                        const std::function<Splits()>& generate);

}  // namespace cosformer::data
