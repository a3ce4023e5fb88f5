#include "base/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <fmt/core.h>

#include "base/error.h"
#include "base/parse_number.h"

namespace cosformer {
namespace {

std::string joined(const std::vector<std::string>& items, const char* separator) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : separator) + item;
  return text;
}

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin <= text.size() && !text.empty();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

std::string quoted(const std::string& text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      result += std::string("\\u00") + kHex[byte >> 4] + kHex[byte & 15];
    } else {
      result += c;
    }
  }
  return result + '"';
}

// The shortest text that reads back to the same number, marked as a real one.
std::string number_text(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".eni") == std::string::npos) text += ".0";
  return text;
}

// Fit for a message, however long it is.
std::string shown(const std::string& text) {
  constexpr std::size_t kMost = 200;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

[[noreturn]] void refuse(const std::string& where, const std::string& key, const std::string& expected,
                         const std::string& got) {
  throw UserError(fmt::format("{}: '{}' must be {}; got '{}'", where, key, expected, shown(got)));
}

std::string limits_text(double least, double most) {
  const auto plain = [](double x) {
    return x == std::floor(x) ? std::to_string(static_cast<long long>(x)) : number_text(x);
  };
  if (most >= 9e18) return "at least " + plain(least);
  return fmt::format("from {} to {}", plain(least), plain(most));
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string last_part(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? key : key.substr(dot + 1);
}

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

void Settings::add_entry(Entry entry) {
  for (const Entry& other : entries_) {
    if (other.key == entry.key) throw std::logic_error(fmt::format("setting '{}' was added twice", entry.key));
  }
  entries_.push_back(std::move(entry));
}

void Settings::add(std::string key, bool& value, std::string help) {
  add_entry({std::move(key), &value, std::move(help), {}});
}

void Settings::add(std::string key, std::int64_t& value, std::string help, std::int64_t least, std::int64_t most) {
  add_entry({std::move(key), &value, std::move(help), {}, static_cast<double>(least), static_cast<double>(most)});
}

void Settings::add(std::string key, double& value, std::string help, double least, double most) {
  add_entry({std::move(key), &value, std::move(help), {}, least, most});
}

void Settings::add(std::string key, std::string& value, std::string help, std::vector<std::string> choices) {
  add_entry({std::move(key), &value, std::move(help), std::move(choices)});
}

void Settings::add(std::string key, std::vector<std::string>& value, std::string help) {
  add_entry({std::move(key), &value, std::move(help), {}});
}

void Settings::rename_section(std::string former, std::string section) {
  renamed_.emplace_back(std::move(former), std::move(section));
}

Settings::Entry& Settings::find(const std::string& given, const std::string& where) {
  std::string key = given;
  for (const auto& [former, section] : renamed_) {
    if (key.starts_with(former + ".")) key = section + key.substr(former.size());
  }
  std::vector<std::string> keys;
  for (Entry& entry : entries_) {
    if (entry.key == key) return entry;
    keys.push_back(entry.key);
  }
  std::string nearest = nearest_name(key, keys);
  if (nearest.empty()) {  // the right name in the wrong section, or in none
    for (const std::string& other : keys) {
      if (last_part(other) == last_part(key)) nearest = other;
    }
  }
  throw UserError(fmt::format(
      "{}: there is no setting '{}'{}", where, shown(key),
      nearest.empty() ? "; cosformer train --settings lists them all"
                      : fmt::format("; did you mean '{}'? (cosformer train --settings lists them all)", nearest)));
}

void Settings::set(const std::string& key, const std::string& text, const std::string& where) {
  Entry& entry = find(key, where);
  std::visit(Overloaded{
                 [&](bool* value) {
                   if (text != "true" && text != "false") refuse(where, key, "true or false", text);
                   *value = text == "true";
                 },
                 [&](std::int64_t* value) {
                   std::int64_t number = 0;
                   if (!parse_number(text, number)) refuse(where, key, "a whole number", text);
                   const auto real = static_cast<double>(number);
                   if (real < entry.least || real > entry.most) {
                     refuse(where, key, "a whole number " + limits_text(entry.least, entry.most), text);
                   }
                   *value = number;
                 },
                 [&](double* value) {
                   double number = 0;
                   if (!parse_number(text, number) || !std::isfinite(number)) refuse(where, key, "a number", text);
                   if (number < entry.least || number > entry.most) {
                     refuse(where, key, "a number " + limits_text(entry.least, entry.most), text);
                   }
                   *value = number;
                 },
                 [&](std::string* value) {
                   if (!entry.choices.empty() &&
                       std::find(entry.choices.begin(), entry.choices.end(), text) == entry.choices.end()) {
                     refuse(where, key, "one of " + joined(entry.choices, ", "), text);
                   }
                   *value = text;
                 },
                 [&](std::vector<std::string>* value) { *value = split_commas(text); },
             },
             entry.place);
  entry.was_set = true;
}

void Settings::set_list(const std::string& key, const std::vector<std::string>& items, const std::string& where) {
  Entry& entry = find(key, where);
  auto* const* list = std::get_if<std::vector<std::string>*>(&entry.place);
  if (list == nullptr) refuse(where, key, "a single value", "[" + joined(items, ", ") + "]");
  **list = items;
  entry.was_set = true;
}

void Settings::assign(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UserError(fmt::format("--set: expected KEY=VALUE, such as train.lr=0.001; got '{}'", assignment));
  }
  set(assignment.substr(0, equals), assignment.substr(equals + 1), "--set");
}

bool Settings::was_set(const std::string& key) const {
  for (const Entry& entry : entries_) {
    if (entry.key == key) return entry.was_set;
  }
  throw std::logic_error(fmt::format("no setting '{}'", key));
}

std::vector<Settings::Description> Settings::descriptions() const {
  std::vector<Description> result;
  for (const Entry& entry : entries_) {
    const std::string value = std::visit(Overloaded{
                                             [](const bool* v) { return std::string(*v ? "true" : "false"); },
                                             [](const std::int64_t* v) { return std::to_string(*v); },
                                             [](const double* v) { return number_text(*v); },
                                             [](const std::string* v) { return quoted(*v); },
                                             [](const std::vector<std::string>* v) {
                                               std::vector<std::string> items;
                                               for (const std::string& item : *v) items.push_back(quoted(item));
                                               return "[" + joined(items, ", ") + "]";
                                             },
                                         },
                                         entry.place);
    result.push_back({entry.key, value,
                      entry.help + (entry.choices.empty() ? "" : fmt::format(" ({})", joined(entry.choices, ", ")))});
  }
  return result;
}

std::string Settings::toml() const {
  const std::vector<Description> all = descriptions();
  std::vector<std::string> sections = {""};
  const auto section_of = [](const std::string& key) {
    const std::size_t dot = key.rfind('.');
    return dot == std::string::npos ? std::string() : key.substr(0, dot);
  };
  for (const Description& d : all) {
    if (std::find(sections.begin(), sections.end(), section_of(d.key)) == sections.end()) {
      sections.push_back(section_of(d.key));
    }
  }
  std::string text;
  for (const std::string& section : sections) {
    if (!section.empty()) text += (text.empty() ? "[" : "\n[") + section + "]\n";
    for (const Description& d : all) {
      if (section_of(d.key) == section) text += fmt::format("{} = {}\n", last_part(d.key), d.value);
    }
  }
  return text;
}

std::string nearest_name(std::string_view text, const std::vector<std::string>& names) {
  constexpr std::size_t kLongestName = 200;  // the comparison takes a time of the product of the lengths
  if (text.size() > kLongestName) return "";
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(text, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace cosformer
