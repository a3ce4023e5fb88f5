#include "cli/train/unread_options.h"

#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::cli {

void refuse_given(const CLI::App& app, const std::vector<std::string>& options, const std::string& why) {
  for (const std::string& option : options) {
    if (app.get_option(option)->count() > 0) throw UserError(fmt::format("{} {}; leave it out", option, why));
  }
}

}  // namespace cosformer::cli
