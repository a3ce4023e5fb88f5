#include "data/readers/class_labels.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/parse_number.h"
#include "data/dataset/row_report.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kMostClasses = 1000;

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t number = 0;
  if (!parse_number(text, number)) return std::nullopt;
  return number;
}

}  // namespace

ClassLabels::ClassLabels(std::vector<std::string> names, UnknownLabels* unknown)
    : given_(!names.empty()), unknown_(unknown), names_(std::move(names)) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!numbers_.emplace(names_[i], static_cast<std::int32_t>(i)).second) {
      throw UserError(fmt::format("the class {} is named twice; expected different names", excerpt(names_[i])));
    }
  }
}

void ClassLabels::count_unknown(const std::string& name) {
  constexpr std::size_t kNamesKept = 5;
  ++unknown_->rows;
  std::vector<std::string>& names = unknown_->names;
  if (names.size() < kNamesKept && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::int32_t ClassLabels::number_of(const std::string& name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  if (given_ && unknown_ != nullptr) {
    count_unknown(name);
    return kNoLabel;
  }
  if (given_) {
    std::string known;
    for (std::size_t i = 0; i < std::min<std::size_t>(names_.size(), 10); ++i) known += (i > 0 ? ", " : "") + names_[i];
    throw UserError(
        fmt::format("the label is {}; expected one of {}{}", excerpt(name), known, names_.size() > 10 ? ", ..." : ""));
  }
  if (name.empty()) throw UserError("the label is empty; expected the name of a class");
  if (names_.size() == kMostClasses) {
    throw UserError(fmt::format("the label {} would be class {}; expected at most {} (is this the label's column?)",
                                excerpt(name), kMostClasses + 1, kMostClasses));
  }
  const auto number = static_cast<std::int32_t>(names_.size());
  names_.push_back(name);
  numbers_.emplace(name, number);
  return number;
}

std::vector<std::string> ClassLabels::finish(DatasetBuilder& builder) {
  if (given_) return names_;
  std::vector<std::size_t> order(names_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool all_numbers =
      std::all_of(names_.begin(), names_.end(), [](const std::string& name) { return whole_number(name).has_value(); });
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (all_numbers) {
      const std::int64_t value_a = *whole_number(names_[a]), value_b = *whole_number(names_[b]);
      if (value_a != value_b) return value_a < value_b;
    }
    return names_[a] < names_[b];  // "1" and "01" are two classes
  });
  std::vector<std::int32_t> new_number(names_.size());
  std::vector<std::string> classes;
  for (const std::size_t old : order) {
    new_number[old] = static_cast<std::int32_t>(classes.size());
    classes.push_back(names_[old]);
  }
  builder.renumber_labels(new_number);
  return classes;
}

}  // namespace cosformer::data
