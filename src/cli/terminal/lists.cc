#include "cli/terminal/lists.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "base/parse_number.h"

namespace cosformer::cli {

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

std::vector<std::string> parse_names(const char* option, const std::string& text,
                                     const std::vector<std::string>& known) {
  std::vector<std::string> items = split_list(text);
  for (const std::string& item : items) {
    if (std::find(known.begin(), known.end(), item) != known.end()) continue;
    std::string possible;
    for (const std::string& name : known) possible += (possible.empty() ? "" : ", ") + name;
    throw UserError(fmt::format("{}: expected a list of {}; got '{}'", std::string(option), possible, item));
  }
  return items;
}

std::vector<long long> parse_numbers(const char* option, const std::string& text, long long least, long long most) {
  std::vector<long long> numbers;
  for (const std::string& item : split_list(text)) {
    long long value = 0;
    if (!parse_number(item, value) || value < least || value > most) {
      throw UserError(fmt::format("{}: expected whole numbers from {} to {}, separated by commas; got '{}'",
                                  std::string(option), least, most, item));
    }
    numbers.push_back(value);
  }
  return numbers;
}

std::vector<kernels::DType> parse_dtypes(const std::string& text) {
  std::vector<kernels::DType> dtypes;
  for (const std::string& name : parse_names("--dtypes", text, {"float64", "float32", "bfloat16", "float16"})) {
    for (const auto dtype :
         {kernels::DType::kFloat64, kernels::DType::kFloat32, kernels::DType::kBFloat16, kernels::DType::kFloat16}) {
      if (name == kernels::name_of(dtype)) dtypes.push_back(dtype);
    }
  }
  return dtypes;
}

}  // namespace cosformer::cli
