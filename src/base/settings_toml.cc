// Reading settings from TOML.
#include "base/formats/toml_values.h"
#include "base/settings.h"

namespace cosformer {

void Settings::read_values(const std::vector<TomlValue>& values) {
  for (const TomlValue& value : values) {
    if (value.is_list) {
      set_list(value.key, value.items, value.where);
    } else {
      set(value.key, value.items.front(), value.where);
    }
  }
}

void Settings::read_toml(const std::string& text, const std::string& name) {
  read_values(toml_values(text, name));
}

void Settings::read_toml_file(const std::string& path) {
  read_values(toml_values_of_file(path));
}

}  // namespace cosformer
