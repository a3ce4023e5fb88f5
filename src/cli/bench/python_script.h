// Python scripts that this program comes with: where they are, which interpreter can run them, and what they print.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

namespace cosformer::cli {

// As one word for the shell.
std::string shell_quoted(const std::string& text);

// The shared library that this program runs on: the one that Python is to load.
std::string library_path();

// `name` in `folder` or, without one, beside an installed program or in the source tree that it was built in. Throws
// UserError, with `what` the command that wants it.
std::filesystem::path find_script(const std::string& what, const std::string& name, const std::string& folder);

// `python` or, without one, the first interpreter whose torch is ours. Throws UserError.
std::string find_python_with_torch(const std::string& what, const std::string& python);

// Whether it has a torch of whatever version, and whether that is ours.
bool has_torch(const std::string& python);
bool has_our_torch(const std::string& python);

// What begins the command of a script that is measured beside this program: settings under which malloc does for it
// what this program's memory (memory.h) does here. Freed memory stays with the process, on huge pages.
std::string measured_python(const std::string& python);

// Runs a shell command and hands over each line of its output that is JSON. Returns whether it ended well.
bool run_json_lines(const std::string& command, const std::function<void(nlohmann::json line)>& handle);

}  // namespace cosformer::cli
