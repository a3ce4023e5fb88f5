#include "cli/eval/class_report.h"

#include <optional>

#include <fmt/core.h>

#include "base/share.h"
#include "base/table.h"

namespace cosformer::cli {
namespace {

constexpr std::size_t kMostColumns = 16, kMostRows = 100;

struct ClassNumbers {
  std::uint64_t examples = 0, predicted = 0;
  std::optional<double> precision, recall, f1;
};

ClassNumbers numbers_of(const Confusion& confusion, std::size_t one) {
  ClassNumbers numbers;
  numbers.examples = confusion.examples_of(one);
  numbers.predicted = confusion.taken_for(one);
  const auto right = static_cast<double>(confusion.at(one, one));
  if (numbers.predicted > 0) numbers.precision = right / static_cast<double>(numbers.predicted);
  if (numbers.examples > 0) numbers.recall = right / static_cast<double>(numbers.examples);
  const std::uint64_t both = numbers.examples + numbers.predicted;
  if (both > 0) numbers.f1 = 2 * right / static_cast<double>(both);
  return numbers;
}

std::string number(std::uint64_t value) {
  return with_commas(static_cast<long long>(value));
}

std::string matrix(const Confusion& confusion) {
  std::vector<std::string> header{"is, taken for"};
  for (const std::string& name : confusion.classes) header.push_back(name);
  Table table(header);
  for (std::size_t is = 0; is < confusion.classes.size(); ++is) {
    std::vector<std::string> row{confusion.classes[is]};
    for (std::size_t as = 0; as < confusion.classes.size(); ++as) row.push_back(number(confusion.at(is, as)));
    table.add(row);
  }
  return table.text();
}

}  // namespace

std::uint64_t Confusion::examples_of(std::size_t is) const {
  std::uint64_t sum = 0;
  for (std::size_t as = 0; as < classes.size(); ++as) sum += at(is, as);
  return sum;
}

std::uint64_t Confusion::taken_for(std::size_t one) const {
  std::uint64_t sum = 0;
  for (std::size_t is = 0; is < classes.size(); ++is) sum += at(is, one);
  return sum;
}

std::string class_report(const Confusion& confusion) {
  const std::size_t count = confusion.classes.size();
  if (count > kMostRows) {
    return fmt::format("numbers by class: with --json (there are {} classes)\n", number(count));
  }
  Table table({"class", "examples", "predicted", "precision", "recall", "F1"});
  for (std::size_t one = 0; one < count; ++one) {
    const ClassNumbers numbers = numbers_of(confusion, one);
    const auto share = [](const std::optional<double>& value) { return value ? percent(*value) : ""; };
    table.add({confusion.classes[one], number(numbers.examples), number(numbers.predicted), share(numbers.precision),
               share(numbers.recall), share(numbers.f1)});
  }
  return table.text() + '\n' +
         (count <= kMostColumns ? matrix(confusion)
                                : fmt::format("confusion matrix: with --json (it has {} columns)\n", number(count)));
}

nlohmann::ordered_json class_json(const Confusion& confusion) {
  using nlohmann::ordered_json;
  const auto share = [](const std::optional<double>& value) { return value ? ordered_json(*value) : ordered_json(); };
  ordered_json json{{"classes", ordered_json::array()}, {"confusion", ordered_json::array()}};
  for (std::size_t one = 0; one < confusion.classes.size(); ++one) {
    const ClassNumbers numbers = numbers_of(confusion, one);
    json["classes"].push_back({{"class", confusion.classes[one]},
                               {"examples", numbers.examples},
                               {"predicted", numbers.predicted},
                               {"precision", share(numbers.precision)},
                               {"recall", share(numbers.recall)},
                               {"f1", share(numbers.f1)}});
    ordered_json row = ordered_json::array();
    for (std::size_t as = 0; as < confusion.classes.size(); ++as) row.push_back(confusion.at(one, as));
    json["confusion"].push_back(row);
  }
  return json;
}

}  // namespace cosformer::cli
