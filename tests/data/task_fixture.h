// What the tests of tasks share: files in a fresh folder, settings that point to them, the sizes of the parts.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/tasks/task.h"

#define EXPECT_HAS(text, part) EXPECT_PRED_FORMAT2(::testing::IsSubstring, part, text)

namespace cosformer::testing {

using Sizes = std::array<std::size_t, 3>;

inline Sizes sizes_of(const data::TaskData& data) {
  return {data.train->size(), data.valid->size(), data.test->size()};
}

class TaskFixture : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = directory_.file(name);
    std::filesystem::create_directories(path.parent_path());
    write_bytes(path.string(), content);
    return path.string();
  }
  data::DataConfig config(const std::string& task, const std::string& name = "") const {
    data::DataConfig config;
    config.task = task;
    config.path = name.empty() ? directory_.path() : directory_.file(name);
    return config;
  }
  static std::string refusal(const data::DataConfig& config) {
    return message_of<UserError>([&] { data::open_task(config); });
  }
  const TemporaryDirectory directory_;
};

}  // namespace cosformer::testing
