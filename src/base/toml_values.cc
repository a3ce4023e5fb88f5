#include "base/toml_values.h"

#include <cerrno>
#include <fstream>
#include <sstream>

#include <toml++/toml.h>

#include "base/error.h"

namespace cosformer {
namespace {

std::string scalar_text(const toml::node& node, const std::string& where, const std::string& key) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* real = node.as_floating_point()) {
    std::ostringstream text;
    text.precision(17);
    text << real->get();
    return text.str();
  }
  throw UserError(where + ": '" + key + "' must be a text, a number, true, false or a list of them");
}

class Flattening {
 public:
  explicit Flattening(const std::string& name) : name_(name) {}

  void add(const toml::table& table, const std::string& prefix) {
    for (const auto& [entry_key, node] : table) {
      const std::string key = prefix + std::string(entry_key.str());
      const std::string where = name_ + ":" + std::to_string(node.source().begin.line);
      if (const auto* section = node.as_table()) {
        add(*section, key + ".");
      } else if (const auto* array = node.as_array()) {
        add(*array, key, where);
      } else {
        values.push_back({key, {scalar_text(node, where, key)}, false, where});
      }
    }
  }

  std::vector<TomlValue> values;

 private:
  void add(const toml::array& array, const std::string& key, const std::string& where) {
    if (array.is_array_of_tables()) {
      for (std::size_t at = 0; at < array.size(); ++at) {
        add(*array.get(at)->as_table(), key + "[" + std::to_string(at) + "].");
      }
      return;
    }
    TomlValue value{key, {}, true, where};
    for (const toml::node& item : array) value.items.push_back(scalar_text(item, where, key));
    values.push_back(std::move(value));
  }

  std::string name_;
};

}  // namespace

std::vector<TomlValue> toml_values(const std::string& text, const std::string& name) {
  Flattening flattening(name);
  try {
    flattening.add(toml::parse(text), "");
  } catch (const toml::parse_error& error) {
    throw UserError(name + ":" + std::to_string(error.source().begin.line) +
                    ": not valid TOML: " + std::string(error.description()));
  }
  return flattening.values;
}

std::vector<TomlValue> toml_values_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) {
    throw UserError("cannot read the settings file '" + path + "': " + system_error_text(errno) +
                    "; configs/ has examples");
  }
  return toml_values(text.str(), path);
}

}  // namespace cosformer
