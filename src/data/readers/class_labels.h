// Labels as they stand in files, turned into class numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/array_dataset.h"

namespace cosformer::data {

// Labels that a model does not know, in rows that are used nevertheless.
struct UnknownLabels {
  std::uint64_t rows = 0;
  std::vector<std::string> names;  // the first few different ones
};

class ClassLabels {
 public:
  // With names given (the classes of the training data, for a test file), no others are accepted. Without, classes are
  // what is found, sorted: by value when all are whole numbers, else by their bytes.
  // `unknown`, with names given: others are counted there and are kNoLabel.
  explicit ClassLabels(std::vector<std::string> names, UnknownLabels* unknown = nullptr);

  // The label's number for now: finish() decides the last one. Throws UserError, with the reason alone, for a name that
  // is not accepted; also when there come to be more classes than a label column plausibly has.
  std::int32_t number_of(const std::string& name);

  // Renumbers the builder's labels when the names were found here; gives the classes in their order.
  std::vector<std::string> finish(DatasetBuilder& builder);

 private:
  void count_unknown(const std::string& name);

  bool given_;
  UnknownLabels* unknown_;
  std::vector<std::string> names_;
  std::map<std::string, std::int32_t> numbers_;
};

}  // namespace cosformer::data
