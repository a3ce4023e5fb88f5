// Whole files in memory, gzip or not, from files and pipes alike: what every reader of rows begins with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"

namespace cosformer::data {

// Opened for reading, with further flags of open(2). Throws UserError when the path is missing or unreadable; Failure
// when the system fails.
FileDescriptor open_for_reading(const std::string& path, int flags = 0);

// The content, unpacked when it is gzip. Throws UserError when the path is missing, a folder, unreadable or damaged
// gzip; Failure when the system fails.
std::string read_content(const std::string& path);

bool is_file(const std::string& path);
bool is_folder(const std::string& path);

// The names in a folder that end in `ending`, sorted (numbers inside names by value: 2.png before 10.png), hidden ones
// left out. Throws UserError when there is no such folder.
std::vector<std::string> names_in_folder(const std::string& folder, std::string_view ending);
// The same for the folders in it.
std::vector<std::string> folders_in_folder(const std::string& folder);

}  // namespace cosformer::data
