#include "base/error.h"

#include <system_error>

#include <fmt/core.h>

namespace cosformer {

UserError::~UserError() = default;
Failure::~Failure() = default;

std::string system_error_text(int error_number) {
  return std::generic_category().message(error_number);
}

Failure file_failure(const std::string& action, const std::string& path, int error_number) {
  return Failure(fmt::format("cannot {} '{}': {}", action, path, system_error_text(error_number)));
}

}  // namespace cosformer
