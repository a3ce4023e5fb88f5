// Reading settings from TOML.
#include <fstream>
#include <sstream>

#include <toml++/toml.h>

#include "base/error.h"
#include "base/settings.h"

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

}  // namespace

void Settings::read_toml(const std::string& text, const std::string& name) {
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw UserError(name + ":" + std::to_string(error.source().begin.line) +
                    ": not valid TOML: " + std::string(error.description()));
  }
  const auto visit = [&](const auto& self, const toml::table& table, const std::string& prefix) -> void {
    for (const auto& [entry_key, node] : table) {
      const std::string key = prefix + std::string(entry_key.str());
      const std::string where = name + ":" + std::to_string(node.source().begin.line);
      if (const auto* section = node.as_table()) {
        self(self, *section, key + ".");
      } else if (const auto* array = node.as_array()) {
        std::vector<std::string> items;
        for (const toml::node& item : *array) items.push_back(scalar_text(item, where, key));
        set_list(key, items, where);
      } else {
        set(key, scalar_text(node, where, key), where);
      }
    }
  };
  visit(visit, root, "");
}

void Settings::read_toml_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) {
    throw UserError("cannot read the settings file '" + path + "': " + system_error_text(errno) +
                    "; configs/ has examples");
  }
  read_toml(text.str(), path);
}

}  // namespace cosformer
