// What a classifier does class by class: precision, recall and the confusion matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace cosformer::cli {

// `counts`: how many examples of class r were taken for class c, at r · classes + c.
struct Confusion {
  std::vector<std::string> classes;
  std::vector<std::uint64_t> counts;

  std::uint64_t at(std::size_t is, std::size_t taken_for) const { return counts.at(is * classes.size() + taken_for); }
  std::uint64_t examples_of(std::size_t is) const;
  std::uint64_t taken_for(std::size_t one) const;
};

// For a terminal: a row for each class, and the matrix where it has few enough columns to be read.
std::string class_report(const Confusion& confusion);

// {"classes": [{"class": …, "examples": …, "predicted": …, "precision": …, "recall": …, "f1": …}, …],
//  "confusion": [[…], …]}; precision of a class that was never predicted and recall of one without an example are null.
nlohmann::ordered_json class_json(const Confusion& confusion);

}  // namespace cosformer::cli
