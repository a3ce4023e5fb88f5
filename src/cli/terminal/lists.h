// Lists on the command line: "1024,4096", "float32,bfloat16".
#pragma once

#include <string>
#include <vector>

#include "kernels/dtype.h"

namespace cosformer::cli {

std::vector<std::string> split_list(const std::string& text);

// Each item must be one of `known`; a UserError names the option, the item and what is possible.
std::vector<std::string> parse_names(const char* option, const std::string& text,
                                     const std::vector<std::string>& known);
std::vector<long long> parse_numbers(const char* option, const std::string& text, long long least, long long most);
std::vector<kernels::DType> parse_dtypes(const std::string& text);

}  // namespace cosformer::cli
