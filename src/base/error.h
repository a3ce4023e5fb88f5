// The two kinds of error that all of the code throws, so that the command line can tell them apart.
//
// UserError: what was asked for or given is wrong (an argument, a file's content); trying again will not help. The
// message names the argument or file, what was expected, what was found and what to do. As argument misuse it becomes
// exit code 2.
// Failure: the request was right but the environment let it down (a full disk, an I/O error). Exit code 1.
// Neither is for broken invariants of our own code: those are std::logic_error or assertions.
#pragma once

#include <stdexcept>
#include <string>

namespace cosformer {

// The destructors live in error.cc so that each class has one vtable and one type identity in the whole program.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~UserError() override;
};

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Failure() override;
};

// The system's text for an errno value; unlike strerror, safe to call from several threads.
std::string system_error_text(int error_number);

// "cannot <action> '<path>': <text of error_number>".
Failure file_failure(const std::string& action, const std::string& path, int error_number);

}  // namespace cosformer
