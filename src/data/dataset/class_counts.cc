#include "data/dataset/class_counts.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "base/formats/white_space.h"
#include "base/table.h"

namespace cosformer::data {
namespace {

constexpr std::size_t kMostShown = 20, kManyClasses = 10;

std::string number(std::size_t value) {
  return with_commas(static_cast<long long>(value));
}

// Names of one class as people type them: without case, and blanks as one or none.
std::string folded(const std::string& name) {
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool unbreakable = name.compare(i, 2, "\xc2\xa0") == 0;
    if (unbreakable) ++i;
    if (unbreakable || is_space(name[i])) {
      if (!result.empty() && result.back() != ' ') result += ' ';
    } else {
      const char c = name[i];
      result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  if (result.ends_with(' ')) result.pop_back();
  return result;
}

std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < parts.size() ? ", " : " and ") + parts[i];
  }
  return text;
}

}  // namespace

std::vector<ClassCount> class_counts(const TaskData& task) {
  std::vector<ClassCount> counts;
  for (const std::string& name : task.train->info().classes) counts.push_back({name, 0, 0, 0});
  const auto count = [&](const Dataset& part, std::size_t ClassCount::*place) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part.label(i) != kNoLabel) ++(counts[static_cast<std::size_t>(part.label(i))].*place);
    }
  };
  count(*task.train, &ClassCount::train);
  count(*task.valid, &ClassCount::valid);
  count(*task.test, &ClassCount::test);
  return counts;
}

std::string describe_classes(const std::vector<ClassCount>& classes) {
  std::vector<ClassCount> shown = classes;
  std::string rest;
  if (classes.size() > kMostShown) {
    std::stable_sort(shown.begin(), shown.end(),
                     [](const ClassCount& a, const ClassCount& b) { return a.total() > b.total(); });
    rest = fmt::format(", and {} more, down to {} with {}", number(classes.size() - kMostShown),
                       excerpt(shown.back().name), number(shown.back().total()));
    shown.resize(kMostShown);
  }
  std::string text;
  for (const ClassCount& c : shown) {
    text += fmt::format("{}{} {} + {} + {}", text.empty() ? "" : ", ", excerpt(c.name), number(c.train),
                        number(c.valid), number(c.test));
  }
  return fmt::format("classes, with their training, validation and test examples: {}{}", text, rest);
}

std::vector<std::string> doubts_about_classes(const std::vector<ClassCount>& classes) {
  std::vector<std::string> doubts;
  std::map<std::string, std::vector<const ClassCount*>> alike;
  std::size_t examples = 0;
  for (const ClassCount& c : classes) {
    alike[folded(c.name)].push_back(&c);
    examples += c.total();
  }
  for (const auto& [name, group] : alike) {
    if (group.size() < 2) continue;
    std::vector<std::string> members;
    for (const ClassCount* c : group)
      members.push_back(fmt::format("{} ({} examples)", excerpt(c->name), number(c->total())));
    doubts.push_back(
        fmt::format("the classes {} differ in case or white space alone; if they are meant as one, write them alike",
                    listed(members)));
  }
  if (classes.size() >= kManyClasses && 2 * classes.size() > examples) {
    doubts.push_back(
        fmt::format("{} classes in {} examples: hardly one occurs twice, so there is nothing to learn them from; is "
                    "data.label_column the column of the labels?",
                    number(classes.size()), number(examples)));
  }
  return doubts;
}

}  // namespace cosformer::data
