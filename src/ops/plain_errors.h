// Torch's errors as the installed API promises them: std::runtime_error, with a text that says what was wrong and
// nothing else. A c10::Error's what() goes on with a backtrace, which an uncaught one shows to the user.
#pragma once

#include <string>

#include <c10/util/Exception.h>

#include "base/error.h"

namespace cosformer::ops {

// Calls, and turns c10::ValueError (wrong arguments) into UserError and any other c10::Error into Failure.
template <class Call>
auto with_plain_errors(const Call& call) {
  try {
    return call();
  } catch (const c10::ValueError& error) {
    throw UserError(error.what_without_backtrace());
  } catch (const c10::Error& error) {
    throw Failure(error.what_without_backtrace());
  }
}

// Of whatever was thrown, the first line, without a backtrace.
inline std::string first_line_of(const std::exception& error) {
  const auto* const from_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = from_torch != nullptr ? from_torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace cosformer::ops
