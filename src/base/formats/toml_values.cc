#include "base/formats/toml_values.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>

// Some damaged texts meet an assertion of the parser, which would end the program, or worse where it is compiled away.
#define TOML_ASSERT(condition) ((condition) ? static_cast<void>(0) : throw std::logic_error(#condition))
#include <fmt/core.h>
#include <toml++/toml.h>

#include "base/error.h"
#include "base/files/regular_file.h"

namespace cosformer {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
// Far beyond any settings. The parser and what it builds go down one call a level, and so could run out of stack.
constexpr std::size_t kMostParts = 16, kDeepest = 32;

// The end of the string that begins at `at`.
std::size_t string_end(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool is_long = text.substr(at, 3) == std::string(3, quote);
  const std::string closing(is_long ? 3 : 1, quote);
  for (at += closing.size(); at < text.size(); ++at) {
    if (text.substr(at, closing.size()) == closing) return at + closing.size();
    if (quote == '"' && text[at] == '\\') ++at;
    if (!is_long && at < text.size() && text[at] == '\n') return at;  // not closed: the parser will say so
  }
  return text.size();
}

// The parser limits how deep values lie in each other, but not of how many parts a key is.
void require_short_keys(std::string_view text, const std::string& name) {
  std::size_t parts = 1;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = string_end(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '.' && ++parts > kMostParts) {
      throw UserError(fmt::format("{}:{}: a key of more than {} parts; expected such as train.lr", name,
                                  1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
                                  kMostParts));
    }
    if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) parts = 1;
    ++at;
  }
}

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
  throw UserError(fmt::format("{}: '{}' must be a text, a number, true, false or a list of them", where, key));
}

class Flattening {
 public:
  explicit Flattening(const std::string& name) : name_(name) {}

  void add(const toml::table& table, const std::string& prefix, std::size_t depth = 0) {
    if (depth > kDeepest) {
      throw UserError(fmt::format("{}: tables nested deeper than {} levels", name_, kDeepest));
    }
    for (const auto& [entry_key, node] : table) {
      const std::string key = prefix + std::string(entry_key.str());
      const std::string where = name_ + ":" + std::to_string(node.source().begin.line);
      if (const auto* section = node.as_table()) {
        add(*section, key + ".", depth + 1);
      } else if (const auto* array = node.as_array()) {
        add(*array, key, where, depth);
      } else {
        values.push_back({key, {scalar_text(node, where, key)}, false, where});
      }
    }
  }

  std::vector<TomlValue> values;

 private:
  void add(const toml::array& array, const std::string& key, const std::string& where, std::size_t depth) {
    if (array.is_array_of_tables()) {
      for (std::size_t at = 0; at < array.size(); ++at) {
        add(*array.get(at)->as_table(), key + "[" + std::to_string(at) + "].", depth + 1);
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
  require_short_keys(text, name);
  Flattening flattening(name);
  try {
    flattening.add(toml::parse(text), "");
  } catch (const toml::parse_error& error) {
    throw UserError(
        fmt::format("{}:{}: not valid TOML: {}", name, error.source().begin.line, std::string(error.description())));
  } catch (const std::logic_error&) {
    throw UserError(name + ": not valid TOML");
  }
  return flattening.values;
}

std::vector<TomlValue> toml_values_of_file(const std::string& path) {
  return toml_values(read_regular_file(path, kMostBytes, "a settings file (configs/ has examples)"), path);
}

}  // namespace cosformer
