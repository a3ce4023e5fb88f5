// The classes of a task: how often each occurs, and what looks like a mistake about them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/tasks/task.h"

namespace cosformer::data {

struct ClassCount {
  std::string name;
  std::size_t train = 0, valid = 0, test = 0;  // examples
  std::size_t total() const { return train + valid + test; }
};

// In the order of the classes; empty where there are none.
std::vector<ClassCount> class_counts(const TaskData& task);

// "classes, with their training, validation and test examples: bad 64 + 8 + 8, good 63 + 9 + 8"; of many classes the
// largest.
std::string describe_classes(const std::vector<ClassCount>& classes);

// Classes whose names differ in case and white space alone; and so many classes that hardly one occurs twice.
std::vector<std::string> doubts_about_classes(const std::vector<ClassCount>& classes);

}  // namespace cosformer::data
