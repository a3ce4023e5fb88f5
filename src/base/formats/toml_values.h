// A TOML file as a flat list of keys and texts: what the settings and other readers of such files share.
#pragma once

#include <string>
#include <vector>

namespace cosformer {

struct TomlValue {
  std::string key;                 // "train.lr"; in arrays of tables "cell[0].name"
  std::vector<std::string> items;  // numbers and truth values as text; one unless `is_list`
  bool is_list = false;
  std::string where;  // "FILE:LINE", for messages
};

// In the order of TOML's tables, which is that of the keys. Throws UserError: not TOML, or a value that is neither a
// text, a number, true, false nor a list of them.
std::vector<TomlValue> toml_values(const std::string& text, const std::string& name);

// Throws UserError when it cannot be read.
std::vector<TomlValue> toml_values_of_file(const std::string& path);

}  // namespace cosformer
