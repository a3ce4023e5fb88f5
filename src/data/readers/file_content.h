// Whole files in memory, gzip or not: what every reader of rows begins with. And what is in a folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cosformer::data {

// The content, unpacked when it is gzip; of regular files and of pipes that the program was given open. Throws as
// UnpackedFile (unpacked_file.h) does.
std::string read_content(const std::string& path);

bool is_file(const std::string& path);
bool is_folder(const std::string& path);

// The names in a folder that end in `ending`, sorted (numbers inside names by value: 2.png before 10.png), hidden ones
// left out. Throws UserError when there is no such folder.
std::vector<std::string> names_in_folder(const std::string& folder, std::string_view ending);
// The same for the folders in it.
std::vector<std::string> folders_in_folder(const std::string& folder);

}  // namespace cosformer::data
