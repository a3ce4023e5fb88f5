// The settings of a program as data: each has a key ("train.lr"), a place in some struct, a meaning and limits.
//
// The structs hold the defaults; a TOML file and then assignments from the command line replace them. A key that does
// not exist is an error that suggests the nearest one. What came out can be written as TOML that reads back to the same
// values. Not here: what the settings mean together; their owners check that.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cosformer {

struct TomlValue;

class Settings {
 public:
  // The referenced values must outlive this object. Keys are "name" or "section.name".
  void add(std::string key, bool& value, std::string help);
  void add(std::string key, std::int64_t& value, std::string help, std::int64_t least = 0,
           std::int64_t most = std::numeric_limits<std::int64_t>::max());
  void add(std::string key, double& value, std::string help, double least = 0,
           double most = std::numeric_limits<double>::infinity());
  // With choices, nothing else is accepted.
  void add(std::string key, std::string& value, std::string help, std::vector<std::string> choices = {});
  void add(std::string key, std::vector<std::string>& value, std::string help);

  // Keys of the section `former` are read as those of `section`, which has had that name before.
  void rename_section(std::string former, std::string section);

  // Each throws UserError that names the place: unknown keys, values of another kind or out of limits.
  void read_toml(const std::string& text, const std::string& name);  // `name` of the file, for messages
  void read_toml_file(const std::string& path);
  void read_values(const std::vector<TomlValue>& values);  // of a file that others read as well
  void assign(const std::string& assignment);              // "train.lr=0.001"; lists are separated by commas
  void set(const std::string& key, const std::string& text, const std::string& where);

  // Whether a file or an assignment has set it.
  bool was_set(const std::string& key) const;

  // All values, in the order of their adding, sections together.
  std::string toml() const;

  struct Description {
    std::string key, value, help;
  };
  std::vector<Description> descriptions() const;

 private:
  using Place = std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*>;
  struct Entry {
    std::string key;
    Place place;
    std::string help;
    std::vector<std::string> choices;
    double least = 0, most = 0;
    bool was_set = false;
  };
  void add_entry(Entry entry);
  Entry& find(const std::string& given, const std::string& where);
  void set_list(const std::string& key, const std::vector<std::string>& items, const std::string& where);

  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, std::string>> renamed_;  // former section, present one
};

// A struct's values as TOML, and back; `add(settings, config)` says which it has.
template <class Config, class Add>
std::string toml_of(Config config, const Add& add) {
  Settings settings;
  add(settings, config);
  return settings.toml();
}

template <class Config, class Add>
Config from_toml(const std::string& text, const std::string& name, const Add& add) {
  Config config;
  Settings settings;
  add(settings, config);
  settings.read_toml(text, name);
  return config;
}

// The one of `names` that `text` was probably meant to be; empty when none is near.
std::string nearest_name(std::string_view text, const std::vector<std::string>& names);

}  // namespace cosformer
